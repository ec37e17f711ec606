// SPDX-License-Identifier: Apache-2.0
import java.net.InetSocketAddress;
import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;

// HttpClient in both of its ways, threads, a child process, files and their mapping.
class Work {
  public static void main(String[] arguments) throws Exception {
    int port = Integer.parseInt(System.getenv("PROXY_PORT"));
    HttpClient client =
        HttpClient.newBuilder().proxy(ProxySelector.of(new InetSocketAddress("127.0.0.1", port))).build();
    HttpRequest request =
        HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + System.getenv("ORIGIN") + "/file.txt")).build();
    HttpResponse.BodyHandler<String> text = HttpResponse.BodyHandlers.ofString();
    System.out.println("client: " + client.send(request, text).body().trim());
    var pages = IntStream.range(0, 8).mapToObj(i -> client.sendAsync(request, text)).toList();
    CompletableFuture.allOf(pages.toArray(new CompletableFuture<?>[0])).join();
    System.out.println("async: " + pages.stream().filter(page -> page.join().body().startsWith("hello")).count());

    System.out.println("sum: " + IntStream.rangeClosed(1, 100_000).parallel().asLongStream().sum());
    Process child = new ProcessBuilder("sh", "-c", "tr a-z A-Z").start();
    child.getOutputStream().write("child".getBytes());
    child.getOutputStream().close();
    System.out.println("process: " + new String(child.getInputStream().readAllBytes()) + " " + child.waitFor());
    Path file = Files.writeString(Path.of("out.txt"), "written");
    System.out.println("files: " + Files.readString(Files.copy(file, Path.of("copy.txt"))));
  }
}
