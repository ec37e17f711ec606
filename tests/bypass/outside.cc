// SPDX-License-Identifier: Apache-2.0
// The outside half: one row after the other, judged and printed.
#include "tests/bypass/outside.h"

#include <getopt.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>

namespace bypass {
namespace {

enum class Verdict { kHeld, kEscaped, kOpen, kNotApplicable };
const char* NameOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHeld: return "held";
    case Verdict::kEscaped: return "escaped";
    case Verdict::kOpen: return "open-by-design";
    case Verdict::kNotApplicable: return "not-applicable";
  }
  return "";
}

struct Result {
  Verdict verdict = Verdict::kHeld;
  int error = 0;
  std::string detail;
  bool broken = false;  // no verdict could be had: the run fails
};

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    char escaped[8];
    if (c == '"' || c == '\\') quoted += std::string("\\") + c;
    else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e)
      quoted.append(escaped, static_cast<size_t>(snprintf(escaped, sizeof(escaped), "\\u%04x", static_cast<unsigned char>(c))));
    else quoted += c;
  }
  return quoted + "\"";
}

bool GotOut(Outside& outside, const Row& row, const Part& part) {
  switch (part.kind) {
    case Kind::kReports: return part.error == 0;
    case Kind::kLeaks: return part.leak.find(outside.secret()) != std::string::npos;
    case Kind::kJudged: return row.judge != nullptr ? row.judge(outside, part) : outside.Noted(part.name);
    case Kind::kArrives: {
      const std::string payload = std::string("<") + row.id + "/" + part.name + ">";
      // What is on its way may arrive.
      for (int i = 0; i < (part.error == 0 ? 300 : 30); ++i) {
        if (!outside.servers().WhoReceived(payload).empty()) return true;
        usleep(1000);
      }
      return false;
    }
  }
  return false;
}

Result Judge(Outside& outside, const Row& row, const Session::Outcome& outcome) {
  Result result;
  const bool bare = outside.options().under.empty();
  bool all = true, any = false, needed = false;
  std::string lost = outcome.lost.empty() ? "" : "; ended by " + outcome.lost;
  for (const Part& part : outcome.parts) {
    const bool out = GotOut(outside, row, part);
    any = any || out;
    needed = needed || !part.optional;
    all = all && (out || part.optional);
    if (result.error == 0 && part.error != 0) result.error = part.error;
    result.detail += (result.detail.empty() ? "" : ", ") + part.name + (out ? " got out" : ": " + (part.error == 0 ? std::string("nothing arrived") : hostile::Name(part.error)));
  }
  result.detail += lost;
  if (any) result.error = 0;
  if (bare) {
    // The proof that the suite tries: every part that this kernel must be able to do has to get out.
    result.verdict = any && all && outcome.lost.empty() ? Verdict::kEscaped : !needed && outcome.done && outcome.lost.empty() ? Verdict::kNotApplicable : Verdict::kHeld;
    if (result.verdict == Verdict::kNotApplicable) result.detail = "this kernel or machine does not do it: " + result.detail;
    return result;
  }
  result.verdict = !any ? Verdict::kHeld : (row.flags & kOpen) != 0 ? Verdict::kOpen : Verdict::kEscaped;
  // A try that was not made proves nothing.
  if (!outcome.done || (outcome.parts.empty() && outcome.lost.empty())) {
    result.verdict = Verdict::kNotApplicable;
    result.detail = "not tried: the inside half did not come back";
    result.broken = true;
  }
  return result;
}

// "id" and "verdict" of each line of an earlier run.
std::map<std::string, std::string> ReadProven(const std::string& path, std::map<std::string, std::string>* details) {
  std::map<std::string, std::string> verdicts;
  std::ifstream file(path);
  const auto value = [](const std::string& line, const std::string& key) {
    const size_t at = line.find("\"" + key + "\":\"");
    if (at == std::string::npos) return std::string();
    const size_t begin = at + key.size() + 4;
    return line.substr(begin, line.find('"', begin) - begin);
  };
  for (std::string line; std::getline(file, line);) {
    verdicts[value(line, "id")] = value(line, "verdict");
    (*details)[value(line, "id")] = value(line, "detail");
  }
  return verdicts;
}

void WritePolicy(Outside* outside) {
  const Options& options = outside->options();
  const std::string path = outside->Text("base") + "/policy.json";
  std::string text = "{\"version\":1,\"module\":\"bypass\",\"net\":\"egress-allowlist\",\"proxy_port\":" + outside->Text("proxy");
  if (options.profile == "write-allowlist")
    text += ",\"profile\":\"write-allowlist\",\"write_defaults\":false,\"allow_write\":[\"" + outside->Text("work") + "\"]";
  else
    text += ",\"ro\":[\"" + outside->Text("tools") + "\"],\"rw\":[\"" + outside->Text("work") + "\"]";
  if (options.broker) text += ",\"broker_socket\":\"" + outside->Text("broker") + "\"";
  std::ofstream(path) << text << "}\n";
  outside->Set("policy", path);
}

int Usage() {
  fprintf(stderr,
          "oarlock-bypass [--json] [--only IDS] [--as root|nocap|nobody] [--broker] [--profile P] [--proven FILE] --under 'LAUNCHER ... --'\n"
          "oarlock-bypass [--json] [--only IDS] [--as root|nocap|nobody] --bare\n"
          "oarlock-bypass --list\n"
          "  IDS: E-20,E-21. In LAUNCHER: {work} {tools} {outside} {base} {proxy_port} {broker} {policy}.\n"
          "  --proven: the lines of a bare run; ids that did not get out there are not-applicable.\n"
          "  Exit code: 1 where an id escaped (--bare: where one did not), 2 where it could not run.\n");
  return 64;
}

std::set<std::string> Split(const std::string& text) {
  std::set<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) words.insert(word);
  return words;
}

// A row's turn; starts the launch where there is none.
Result Take(Outside& outside, const Row& row, std::unique_ptr<Session>* session) {
  if (row.prepare != nullptr) row.prepare(outside);
  outside.Forget();
  const bool own = (row.flags & (kOwnLaunch | kAfterwards)) != 0;
  std::unique_ptr<Session> alone;
  std::unique_ptr<Session>& used = own ? alone : *session;
  if (own) session->reset();  // one terminal, one module at a time
  if (used == nullptr || !used->ready()) used = std::make_unique<Session>(&outside, row.before_launch);
  Result result;
  if (!used->ready()) {
    std::string said = used->Said();
    std::erase(said, '\r');
    while (!said.empty() && said.back() == '\n') said.pop_back();
    result.detail = "the launch was refused: " + used->end() + ", " + said.substr(0, 300);
    // Under circumstances of its own that is an answer; otherwise there is nothing to judge.
    // 118 and 119 are of our own: the launcher was never started.
    const bool never = used->end() == "exit 118" || used->end() == "exit 119";
    if (row.before_launch == nullptr || never) result.verdict = Verdict::kNotApplicable, result.broken = true;
    used.reset();
  } else {
    const Session::Outcome outcome = used->Go(row);
    if ((row.flags & kAfterwards) != 0) {
      used->Finish();
      usleep(700'000);
    }
    result = Judge(outside, row, outcome);
    if (!outcome.done) used.reset();
  }
  if (row.clean != nullptr) row.clean(outside);
  return result;
}

}  // namespace

int RunOutside(int argc, char** argv) {
  Options options;
  bool bare = false, list = false;
  const option kOptions[] = {{"json", no_argument, nullptr, 'j'},       {"only", required_argument, nullptr, 'o'}, {"under", required_argument, nullptr, 'u'},
                             {"bare", no_argument, nullptr, 'b'},       {"as", required_argument, nullptr, 'a'},   {"broker", no_argument, nullptr, 'k'},
                             {"profile", required_argument, nullptr, 'p'}, {"proven", required_argument, nullptr, 'f'}, {"list", no_argument, nullptr, 'l'},
                             {nullptr, 0, nullptr, 0}};
  for (int c; (c = getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    const std::string value = optarg != nullptr ? optarg : "";
    if (c == 'j') options.json = true;
    else if (c == 'o') options.only = Split(value);
    else if (c == 'u') options.under = value;
    else if (c == 'b') bare = true;
    else if (c == 'k') options.broker = true;
    else if (c == 'p') options.profile = value;
    else if (c == 'f') options.proven = value;
    else if (c == 'l') list = true;
    else if (c == 'a' && value == "nocap") options.identity = Identity::kNoCapabilities;
    else if (c == 'a' && value == "nobody") options.identity = Identity::kUnprivileged;
    else if (c == 'a' && value == "root") options.identity = Identity::kRoot;
    else return Usage();
  }
  const std::vector<Row> rows = AllRows();
  if (list) {
    for (const Row& row : rows) printf("%s\t%s\t%s\n", row.id, row.what, row.elsewhere != nullptr ? row.elsewhere : "");
    return 0;
  }
  if (bare == !options.under.empty() || optind != argc) return Usage();
  std::map<std::string, std::string> details;
  const auto proven = options.proven.empty() ? std::map<std::string, std::string>{} : ReadProven(options.proven, &details);
  signal(SIGPIPE, SIG_IGN);

  Outside outside(options);
  WritePolicy(&outside);
  std::unique_ptr<Session> session;
  std::map<Verdict, int> count;
  bool well = true;
  for (const Row& row : rows) {
    if (!options.only.empty() && !options.only.contains(row.id)) continue;
    Result result;
    const auto known = proven.find(row.id);
    if (row.elsewhere != nullptr) {
      result = {Verdict::kNotApplicable, 0, row.elsewhere, false};
    } else if (known != proven.end() && known->second != "escaped") {
      result = {Verdict::kNotApplicable, 0, "bare: " + details[row.id], false};
    } else {
      const auto begun = std::chrono::steady_clock::now();
      result = Take(outside, row, &session);
      if (getenv("OARLOCK_BYPASS_TIMES") != nullptr)
        fprintf(stderr, "%s %.2f s\n", row.id, std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
    }
    ++count[result.verdict];
    if (result.broken || (bare ? result.verdict == Verdict::kHeld : result.verdict == Verdict::kEscaped)) well = false;
    if (options.json) {
      printf("{\"id\":\"%s\",\"verdict\":\"%s\",\"errno\":%s,\"detail\":%s}\n", row.id, NameOf(result.verdict),
             result.error == 0 ? "null" : Quoted(hostile::Name(result.error)).c_str(), Quoted(result.detail).c_str());
    } else {
      printf("%-6s %-15s %s\n%24s%s\n", row.id, NameOf(result.verdict), row.what, "", result.detail.c_str());
    }
    (void)fflush(stdout);
  }
  session.reset();
  fprintf(stderr, "%d held, %d escaped, %d open-by-design, %d not-applicable\n", count[Verdict::kHeld], count[Verdict::kEscaped], count[Verdict::kOpen],
          count[Verdict::kNotApplicable]);
  return well ? 0 : 1;
}

}  // namespace bypass
