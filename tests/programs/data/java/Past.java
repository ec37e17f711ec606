// SPDX-License-Identifier: Apache-2.0
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

// Both ways to a server: the client, and the socket below older ones. The message that names the reason may be a cause's.
class Past {
  public static void main(String[] arguments) throws Exception {
    int port = Integer.parseInt(System.getenv("TARGET"));
    boolean refused = false;
    try {
      HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/")).build();
      System.out.println(HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body());
    } catch (java.io.IOException error) {
      error.printStackTrace();
      refused = true;
    }
    try (Socket socket = new Socket("127.0.0.1", port)) {
      System.out.println("connected");
    } catch (java.io.IOException error) {
      System.err.println("socket: " + error);
      if (refused) System.exit(3);
    }
  }
}
