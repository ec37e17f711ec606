// SPDX-License-Identifier: Apache-2.0
// oarlock-cli: every verb of `oarlock` but sandbox-exec. No logic of its own: options in, one function called.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <iostream>

#include "cli/audit_command.h"
#include "cli/doctor_command.h"
#include "cli/policy_command.h"
#include "cli/run_command.h"
#include "cli/status_command.h"

namespace oarlock::cli {
namespace {

constexpr int kUsage = 64;

void AddRun(CLI::App& app, std::function<int()>& chosen, char** environment) {
  CLI::App* verb = app.add_subcommand("run", "Run a command confined, with a supervisor of its own");
  auto run = std::make_shared<RunCommand>();
  verb->add_option("--proxy-port", run->proxy_port, "The only TCP port that may be reached, on 127.0.0.1")->check(CLI::Range(1, 65535));
  verb->add_option("--ro", run->ro, "May be read and executed from")->take_all()->allow_extra_args(false)->type_name("PATH");
  verb->add_option("--rw", run->rw, "May be read and written; with write-allowlist also executed from")->take_all()->allow_extra_args(false)->type_name("PATH");
  verb->add_option("--broker", run->broker, "The only unix socket that may be reached")->type_name("SOCKET");
  verb->add_option("--policy", run->policy, "A policy file instead of the options above")->type_name("FILE");
  verb->add_option("--profile", run->profile, "What is allowed by itself: 'module' (nothing but the system) or 'write-allowlist' (all reads, the network)")->capture_default_str();
  verb->add_option("--status-fd", run->status_fd, "Write one JSON line per stage to this descriptor")->check(CLI::NonNegativeNumber);
  verb->add_flag("--quiet", run->quiet, "No footer line about refusals");
  verb->add_flag("--keep-children", run->keep_children, "Leave what the command left running");
  verb->add_flag("--dry-run", run->dry_run, "Print the effective policy and stop");
  verb->add_option("command", run->command, "The command and its arguments, behind --")->required()->type_name("COMMAND");
  verb->footer("Examples:\n  oarlock run --proxy-port 3128 --rw \"$PWD\" -- git clone http://host/repo.git\n"
               "  oarlock run --policy module.json -- /usr/bin/python3 job.py");
  verb->callback([run, &chosen, environment] { chosen = [run, environment] { return Run(*run, environment); }; });
}

void AddSandbox(CLI::App& app, std::function<int()>& chosen) {
  CLI::App* status = app.add_subcommand("sandbox-status", "What this node can enforce, as JSON");
  status->add_flag("--json")->description("The default, and the only form");
  status->callback([&chosen] { chosen = [] { return SandboxStatus(std::cout); }; });

  CLI::App* check = app.add_subcommand("sandbox-check", "0 where a supervisor confirms that a process is confined, else 1");
  auto pid = std::make_shared<int32_t>(0);
  auto control = std::make_shared<std::string>();
  check->add_option("pid", *pid, "The process")->required()->check(CLI::PositiveNumber)->type_name("PID");
  check->add_option("--control", *control, "Ask the supervisor with this control socket alone")->type_name("SOCKET");
  check->callback([&chosen, pid, control] { chosen = [pid, control] { return SandboxCheck(*pid, *control, std::cerr); }; });

  // Happens in the static front; named here for --help.
  app.add_subcommand("sandbox-exec", "POLICY.json -- /abs/argv0 args...: confine this process and execute the module")
      ->callback([&chosen] { chosen = [] { return kUsage; }; });
}

void AddDoctor(CLI::App& app, std::function<int()>& chosen) {
  CLI::App* verb = app.add_subcommand("doctor", "What this host cannot do, why, and the remedy, by trying it");
  auto options = std::make_shared<DoctorOptions>();
  verb->add_option("--profile", options->profile, "The profile that is asked about: module or write-allowlist")->capture_default_str();
  verb->add_flag("--json", options->json, "As JSON");
  verb->footer("Exit code: 0 everything of the profile can be enforced, 1 something is unavailable.\n\n"
               "Examples:\n  oarlock doctor\n  OARLOCK_SUPERVISOR=/run/oarlock/admit.sock oarlock doctor --json | jq .unavailable");
  verb->callback([&chosen, options] { chosen = [options] { return Doctor(*options, std::cout, std::cerr); }; });
}

void AddPolicy(CLI::App& app, std::function<int()>& chosen) {
  CLI::App* policy = app.add_subcommand("policy", "Look at policies");
  policy->require_subcommand(1);
  auto file = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  CLI::App* check = policy->add_subcommand("check", "Every problem of a policy file, one line each");
  check->add_option("file", *file, "The policy")->required()->type_name("FILE");
  check->add_flag("--json", *json, "As JSON");
  check->callback([&chosen, file, json] { chosen = [file, json] { return PolicyCheck(*file, *json, std::cout, std::cerr); }; });
  CLI::App* show = policy->add_subcommand("show", "The effective policy, every default filled in");
  show->add_option("file", *file, "The policy")->required()->type_name("FILE");
  show->add_flag("--json")->description("The default, and the only form");
  show->callback([&chosen, file] { chosen = [file] { return PolicyShow(*file, std::cout, std::cerr); }; });
}

void AddSource(CLI::App* verb, AuditSource& source) {
  verb->add_option("--log", source.log, "The log, or a directory of logs (default: the node's and your own)")->type_name("FILE");
  verb->add_flag("--json", source.json, "Records as they are in the log");
  source.terminal = source.colour = ::isatty(STDOUT_FILENO) == 1;
}

void AddAudit(CLI::App& app, std::function<int()>& chosen) {
  CLI::App* audit = app.add_subcommand("audit", "Read the audit log");
  audit->require_subcommand(1);
  auto list = std::make_shared<AuditListOptions>();
  CLI::App* lister = audit->add_subcommand("list", "Refusals, one line each");
  AddSource(lister, list->source);
  lister->add_option("file", list->source.log, "The same as --log")->type_name("FILE");
  lister->add_option("--session", list->session, "Of this session")->type_name("ID");
  lister->add_option("--reason", list->reason, "With this reason code")->type_name("CODE");
  lister->add_option("--process", list->process, "Of this pid, process name or executable")->type_name("P");
  lister->add_option("--target", list->target, "Whose address holds this")->type_name("T");
  lister->add_option("--since", list->since, "From this moment on")->type_name("TIME");
  lister->add_option("--until", list->until, "Before this moment")->type_name("TIME");
  lister->add_flag("--all", list->all, "Routine probes, approvals, starts and ends too");
  lister->add_flag("--ids", list->ids, "Each record's id in front");
  lister->callback([&chosen, list] { chosen = [list] { return AuditList(*list, std::cout, std::cerr); }; });

  auto id = std::make_shared<std::string>();
  auto source = std::make_shared<AuditSource>();
  CLI::App* shower = audit->add_subcommand("show", "One record with every field");
  shower->add_option("id", *id, "Its id (metadata.uid)")->required()->type_name("ID");
  AddSource(shower, *source);
  shower->callback([&chosen, id, source] { chosen = [id, source] { return AuditShow(*id, *source, std::cout, std::cerr); }; });
}

}  // namespace
}  // namespace oarlock::cli

int main(int argc, char** argv, char** environment) {
  using namespace oarlock::cli;  // NOLINT(google-build-using-namespace)
  CLI::App app{"oarlock: a module reaches its broker and its proxy, and nothing else", "oarlock"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "oarlock " OARLOCK_VERSION);
  std::function<int()> chosen;
  AddRun(app, chosen, environment);
  AddSandbox(app, chosen);
  AddDoctor(app, chosen);
  AddPolicy(app, chosen);
  AddAudit(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error) : (app.exit(error), kUsage);
  }
  return chosen ? chosen() : kUsage;
}
