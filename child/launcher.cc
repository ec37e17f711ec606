// SPDX-License-Identifier: Apache-2.0
#include "child/launcher.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "child/confine.h"
#include "child/descriptors.h"
#include "child/environment.h"
#include "child/handover.h"
#include "child/identity.h"
#include "child/landlock.h"
#include "child/prove.h"
#include "child/roots.h"
#include "notif/abi/process.h"
#include "notif/base/places.h"
#include "notif/base/sha256.h"
#include "notif/base/text.h"
#include "notif/filter/programs.h"
#include "policy/report.h"

namespace oarlock::child {
namespace {

constexpr const char* kUsage = "usage: oarlock sandbox-exec POLICY.json -- /abs/argv0 [args...]";
constexpr const char* kPrefix = "sandbox launch: ";

void Say(const std::string& text) {
  const std::string line = kPrefix + text + "\n";
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

int Usage(const std::string& what) {
  Say(what + "; " + kUsage);
  return kExitUsage;
}

// A descriptor that a variable of ours names. Absent: -1. Ill-formed or closed: a problem.
Checked<int> NamedDescriptor(const char* name) {
  const char* value = ::getenv(name);
  if (value == nullptr) return -1;
  uint64_t fd = 0;
  if (!ParseNumber(value, 0, INT32_MAX, &fd) || ::fcntl(static_cast<int>(fd), F_GETFD) < 0)
    return Stop(Code::kRange, "", std::string(name) + "='" + Printable(value, 40) + "' names no open descriptor");
  return static_cast<int>(fd);
}

// As the module must not see it, or must. Read back: what stays open by mistake is the module's.
Step MarkDescriptor(int fd, bool close_on_exec) {
  const int flag = close_on_exec ? FD_CLOEXEC : 0;
  if (::fcntl(fd, F_SETFD, flag) == 0 && ::fcntl(fd, F_GETFD) == flag) return {};
  return Stop(Code::kKUnsupported, "", "descriptor " + std::to_string(fd) + " cannot be marked for " + (close_on_exec ? "closing" : "keeping") + " at exec");
}

// What the module inherits of SIGPIPE, which the launch had ignored.
Step RestorePipeSignal(sighandler_t inherited) {
  if (inherited == SIG_ERR) return {};  // it was never changed
  struct sigaction wanted {};
  wanted.sa_handler = inherited;
  if (SetDisposition(SIGPIPE, wanted)) return {};
  return Stop(Code::kKUnsupported, "", "SIGPIPE stays ignored");
}

struct Loaded {
  policy::File file;
  policy::Policy policy;
};

Checked<Loaded> LoadPolicy(const std::string& name) {
  Loaded loaded;
  const bool from_environment = name == "-";
  if (from_environment) {
    const char* text = ::getenv("MOAT_SANDBOX_POLICY");
    if (text == nullptr) return Stop(Code::kRead, "", "the policy argument is '-' and MOAT_SANDBOX_POLICY is not set");
    loaded.file.text = text;
    loaded.file.sha256 = Sha256Hex(loaded.file.text);
  } else {
    auto file = policy::ReadFile(name);
    if (!file) return std::unexpected(file.error());
    loaded.file = std::move(*file);
  }
  auto parsed = policy::Parse(loaded.file.text, from_environment);
  if (!parsed) return std::unexpected(parsed.error());
  loaded.policy = std::move(*parsed);
  return loaded;
}

// The launch in progress: what the steps hand on to each other.
class Launcher {
 public:
  Launcher(std::string policy_name, std::span<char*> argv, char** environment, sighandler_t pipe_disposition)
      : policy_name_(std::move(policy_name)), argv_(argv), environment_(environment), pipe_disposition_(pipe_disposition) {}

  Step Prepare();   // still free
  Step Confine();   // irreversible from here on
  Step HandOver();  // to the supervisor, with its proof
  Step Finish();    // descriptors, report, the confirmation byte
  int Exec();

 private:
  Step ReadInheritance();
  Step SettleDescriptors();
  Step FindRoots();
  Step ChooseShape();
  Step FindSupervisor();
  Step CheckBuilt() const;
  Step CheckRequired() const;
  Step OpenReport();
  Step ConfineFiles();
  Step Filter();
  Step FilterAlone(const Error& refused);
  void TellDegradations();
  [[nodiscard]] bool best_effort() const noexcept { return loaded_.policy.enforce == policy::Enforce::kBestEffort; }
  [[nodiscard]] std::vector<int> OwnDescriptors() const;

  std::string policy_name_;
  std::span<char*> argv_;
  char** environment_;
  sighandler_t pipe_disposition_;

  Loaded loaded_;
  std::vector<std::string> module_environment_;
  UniqueFd confined_, exec_status_, report_;
  std::string place_;  // the supervisor; empty: a private one
  Places places_;
  std::vector<int> kept_;
  Roots roots_;
  int landlock_abi_ = 0;
  Shape shape_;
  std::optional<Handover> handover_;
  std::optional<LoopProof> proof_;
  std::optional<DescriptorTable> table_;
  uint64_t netns_cookie_ = 0;
  UniqueFd listener_;
  policy::Facts facts_;
};

Step Launcher::ReadInheritance() {
  if (auto step = EnsureStandardDescriptors(); !step) return step;
  if (auto step = CheckSingleThread(); !step) return step;
  if (auto step = CheckOwnIds(); !step) return step;
  for (const auto& [name, fd] : {std::pair("OARBANK_CONFINED", &confined_), std::pair("OARLOCK_EXEC_STATUS", &exec_status_)}) {
    auto named = NamedDescriptor(name);
    if (!named) return std::unexpected(named.error());
    // 0 to 2 may be named too; they are the module's all the same, so a copy is what we close.
    if (*named >= 0 && *named <= 2) fd->Reset(::fcntl(*named, F_DUPFD_CLOEXEC, 3));
    else if (*named > 2) fd->Reset(*named);
    if (*named >= 0)
      if (auto step = MarkDescriptor(fd->get(), true); !step) return step;
  }
  return {};
}

Step Launcher::Prepare() {
  if (auto step = ReadInheritance(); !step) return step;
  auto loaded = LoadPolicy(policy_name_);
  if (!loaded) return std::unexpected(loaded.error());
  loaded_ = std::move(*loaded);
  const policy::Policy& policy = loaded_.policy;
  if (auto step = CheckBuilt(); !step) return step;
  if (auto step = SettleDescriptors(); !step) return step;
  if (auto step = FindRoots(); !step) return step;
  if (auto step = ChooseShape(); !step) return step;

  if (auto step = FindSupervisor(); !step) return step;
  auto proof = LoopProof::Make();
  if (!proof) return std::unexpected(proof.error());
  proof_ = std::move(*proof);
  socklen_t size = sizeof(netns_cookie_);
  if (::getsockopt(proof_->fd(), SOL_SOCKET, abi::kSoNetnsCookie, &netns_cookie_, &size) != 0 || netns_cookie_ == 0)
    return Stop(Code::kNotify, "", std::string("SO_NETNS_COOKIE, which tells the supervisor our network, cannot be had: ") + ErrnoName(errno));
  auto table = DescriptorTable::Open();
  if (!table) return std::unexpected(table.error());
  table_ = std::move(*table);
  module_environment_ = MakeEnvironment(policy, environment_);
  facts_.landlock_abi = landlock_abi_;
  facts_.landlock_errata = LandlockErrata().value_or(0);
  facts_.listener = true;
  facts_.age = shape_.age;
  facts_.own_uid = policy.run_as.has_value();
  facts_.log_below_home = place_.empty() && roots_.log_below_home;
  if (auto step = CheckRequired(); !step) return step;
  return OpenReport();
}

// What was inherited is looked at, and what nobody named is closed, so that nothing of it can be used or leak below.
Step Launcher::SettleDescriptors() {
  const policy::Policy& policy = loaded_.policy;
  auto kept = KeptDescriptors(policy.keep_fds, environment_);
  if (!kept) return std::unexpected(kept.error());
  kept_ = std::move(*kept);
  for (int fd = 0; fd <= 2; ++fd)
    if (auto step = ClassifyDescriptor(fd, ""); !step) return step;
  if (auto step = OwnStandardDescriptions(); !step) return step;
  for (const int fd : kept_) {
    if (auto step = ClassifyDescriptor(fd, "/keep_fds"); !step) return step;
    if (auto step = MarkDescriptor(fd, false); !step) return step;
  }
  const char* supervisor = ::getenv("OARLOCK_SUPERVISOR");
  place_ = policy.supervisor.value_or(supervisor != nullptr ? supervisor : "");
  std::vector<int> open = kept_;
  for (const UniqueFd* own : {&confined_, &exec_status_})
    if (own->valid()) open.push_back(own->get());
  uint64_t inherited = 0;
  if (place_.starts_with("fd:") && ParseNumber(std::string_view(place_).substr(3), 3, INT32_MAX, &inherited)) open.push_back(static_cast<int>(inherited));
  std::ranges::sort(open);
  return CloseOthers(open);
}

Step Launcher::FindRoots() {
  places_ = Places::ForSelf();
  if (!places_.unknown.empty()) return Stop(Code::kNotify, "", "where this user's logs lie cannot be told: " + places_.unknown);
  RootsContext context;
  context.places = places_;
  context.policy_directory = loaded_.file.directory_of;
  context.program = argv_[0];
  context.supervisor = place_;
  if (const char* home = ::getenv("HOME"); home != nullptr) context.home = home;
  auto roots = OpenRoots(loaded_.policy, context);
  if (!roots) return std::unexpected(roots.error());
  roots_ = std::move(*roots);
  for (const std::string& warning : roots_.warnings) Say("warning: " + warning);
  return {};
}

// By what the kernel has and the policy asks for.
Step Launcher::ChooseShape() {
  const policy::Policy& policy = loaded_.policy;
  auto abi = LandlockAbi();
  if (!abi && !best_effort()) return Stop(Code::kLandlock, abi.error());
  landlock_abi_ = abi.value_or(0);
  if (!abi) facts_.why_no_landlock = "unavailable: " + abi.error().Message();
  const bool all_sockets = policy.net == NetMode::kEgressAllowlist && policy.broker_socket.has_value();
  if (policy.net == NetMode::kHost) shape_.network = Network::kHost;
  else if (policy.mediation == policy::Mediation::kConnect && all_sockets) shape_.network = Network::kConnect;
  shape_.exec_strict = policy.exec_strict;
  shape_.sysv_ipc = policy.sysv_ipc;
  shape_.gid_zero = (policy.run_as ? policy.run_as->gid : ::getegid()) == 0;
  shape_.age = KernelAge(landlock_abi_);
  return {};
}

Step Launcher::CheckBuilt() const {
  if (loaded_.policy.net == NetMode::kEgressAny)
    return Stop(Code::kKUnsupported, "/net", "egress-any is unavailable: use egress-allowlist with a proxy");
  return {};
}

Step Launcher::CheckRequired() const {
  for (size_t i = 0; i < loaded_.policy.require.size(); ++i) {
    const std::string& name = loaded_.policy.require[i];
    const policy::Capability capability = policy::StateOf(name, facts_, &loaded_.policy);
    if (capability.state != policy::State::kEnforced)
      return Stop(Code::kRequired, "/require/" + std::to_string(i), "'" + name + "' is " + std::string(Name(capability.state)) + " here: " + capability.why);
  }
  return {};
}

Step Launcher::OpenReport() {
  if (!loaded_.policy.report) return {};
  // Opened while we may, written when all of it is true.
  report_.Reset(::openat(roots_.report_directory.get(), roots_.report_name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644));
  roots_.report_directory.Reset();
  if (!report_.valid()) return Stop(Code::kPath, "/report", "'" + Printable(*loaded_.policy.report, 200) + "': " + ErrnoName(errno));
  return {};
}

Step Launcher::FindSupervisor() {
  auto handover = place_.empty() ? Handover::StartPrivate(places_.log_directory, places_.runtime) : Handover::Connect(place_);
  if (!handover) return std::unexpected(handover.error());
  handover_ = std::move(*handover);
  auto prepared = handover_->Prepare();
  if (!prepared) return std::unexpected(prepared.error());
  return {};
}

Step Launcher::Confine() {
  const policy::Policy& policy = loaded_.policy;
  // While /proc/self is ours: with another identity it is root's.
  if (auto step = ResetPersonality(); !step) return step;
  if (policy.tty == policy::Tty::kNone)
    if (auto step = LeaveTerminal(); !step) return step;
  if (auto step = TakeIdentity(policy.run_as); !step) return step;
  if (auto step = SetLimits(policy.limits.nofile); !step) return step;
  if (auto step = ResetSignals(); !step) return step;
  if (auto step = SetNoNewPrivs(); !step) return step;
  if (landlock_abi_ > 0)
    if (auto step = ConfineFiles(); !step) return step;
  roots_.rules.clear();  // closes the rules' descriptors
  return Filter();
}

Step Launcher::ConfineFiles() {
  const LandlockRights handled = HandledRights(landlock_abi_, loaded_.policy.net == NetMode::kHost);
  const LandlockProof proof(roots_.rules);
  auto ruleset = MakeRuleset(handled, roots_.rules);
  if (!ruleset) return std::unexpected(ruleset.error());
  if (auto step = RestrictSelf(ruleset->get(), landlock_abi_, loaded_.policy.log_denials); !step) return step;
  ruleset->Reset();
  return proof.Prove(handled, roots_.rules);
}

Step Launcher::Filter() {
  auto listener = InstallFilter(FilterProgram(shape_));
  if (!listener && best_effort()) return FilterAlone(listener.error());
  if (!listener) {
    const int code = listener.error().code;
    const char* remedy = code == EBUSY    ? " (another seccomp listener is already installed: a sandbox cannot be started inside one)"
                         : code == EINVAL ? " (WAIT_KILLABLE_RECV needs Linux 5.19)"
                                          : "";
    return Stop(Code::kSeccomp, "", listener.error().Message() + remedy);
  }
  listener_ = std::move(*listener);
  return {};
}

// No listener can be had. What the supervisor would have judged is refused then, so a module that needs it cannot run.
Step Launcher::FilterAlone(const Error& refused) {
  if (loaded_.policy.net == NetMode::kEgressAllowlist || loaded_.policy.broker_socket)
    return Stop(Code::kNotify, "", refused.Message() + ", and without a listener nobody can let this module reach its proxy and broker");
  // What the older ages notify in addition is of use with an answer alone.
  shape_.age = facts_.age = Age::kCurrent;
  facts_.listener = false;
  facts_.why_no_listener = "unavailable: a seccomp listener cannot be installed: " + refused.Message();
  if (auto step = CheckRequired(); !step) return step;
  if (auto installed = InstallFilterAlone(FilterProgram(shape_)); !installed) return Stop(Code::kSeccomp, installed.error());
  // By effect: a descriptor that is none is told from a refusal.
  constexpr unsigned long kRefusedRequest = 0x5423;  // TIOCSETD
  if (::ioctl(-1, kRefusedRequest) == 0 || errno != EPERM) return Stop(Code::kSeccomp, "", "seccomp returned success, yet a forbidden ioctl is not refused: something filters us");
  return {};
}

// Best effort is never silent: each capability that this kernel or host takes away, and each right that Landlock lacks here.
void Launcher::TellDegradations() {
  if (best_effort()) facts_.degraded = policy::Degradations(facts_, loaded_.policy);
  for (const std::string& line : facts_.degraded) Say("DEGRADED " + line);
  const bool announced = best_effort() || loaded_.policy.profile == policy::Profile::kWriteAllowlist;
  if (!announced || landlock_abi_ == 0) return;
  // The phrase is a contract of its own, without our prefix.
  const std::string line = "kernel sandbox active (Landlock ABI v" + std::to_string(landlock_abi_) + ")\n";
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

Step Launcher::HandOver() {
  if (!listener_.valid()) {
    handover_->Close();
    proof_->Close();
    return {};
  }
  wire::Admission admission;
  admission.module = loaded_.policy.module;
  admission.kind = loaded_.policy.kind;
  admission.policy_json = policy::Emit(loaded_.policy);
  admission.policy_sha256 = loaded_.file.sha256;
  admission.filter = ShapeName(shape_);
  admission.probe = proof_->probe();
  admission.grant = policy::ToGrant(loaded_.policy, roots_.broker_resolved);
  admission.grant.netns_cookie = netns_cookie_;
  admission.grant.check_netns = !kept_.empty();
  admission.pid = ::getpid();
  admission.fds = {std::string(wire::kListenerName)};
  const std::string message = wire::Encode(admission);
  if (message.size() > wire::kMaxMessageBytes)
    return Stop(Code::kNotify, "", "the policy does not fit into the 128 KiB of the supervisor's message");
  auto session = handover_->Admit(message, std::move(listener_));
  if (!session) return std::unexpected(session.error());
  facts_.session = *session;
  handover_->Close();
  auto step = proof_->Prove(shape_.network == Network::kHost);
  proof_->Close();
  return step;
}

std::vector<int> Launcher::OwnDescriptors() const {
  std::vector<int> own = {0, 1, 2};
  own.insert(own.end(), kept_.begin(), kept_.end());
  for (const UniqueFd* fd : {&confined_, &exec_status_})
    if (fd->valid()) own.push_back(fd->get());
  std::ranges::sort(own);
  return own;
}

Step Launcher::Finish() {
  TellDegradations();
  if (report_.valid()) {
    const std::string text = policy::Report(facts_, &loaded_.policy, loaded_.file.sha256, roots_.skipped) + "\n";
    if (::write(report_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      return Stop(Code::kPath, "/report", "'" + Printable(*loaded_.policy.report, 200) + "' cannot be written: " + ErrnoName(errno));
    report_.Reset();
  }
  auto open = table_->List();
  table_.reset();
  if (!open) return std::unexpected(open.error());
  if (*open != OwnDescriptors()) {
    std::string extra;
    for (const int fd : *open)
      if (!std::ranges::binary_search(OwnDescriptors(), fd)) extra += " " + std::to_string(fd);
    return Stop(Code::kKUnsupported, "", "descriptors that nobody named are still open:" + extra + " (close_range had no effect: something filters us)");
  }
  if (confined_.valid()) {
    // The sandbox holds. The parent still verifies.
    const char byte = 1;
    if (::write(confined_.get(), &byte, 1) != 1) return Stop(Code::kKUnsupported, "", std::string("OARBANK_CONFINED cannot be written: ") + ErrnoName(errno));
    confined_.Reset();
  }
  return {};
}

int Launcher::Exec() {
  std::vector<char*> environment;
  for (std::string& entry : module_environment_) environment.push_back(entry.data());
  environment.push_back(nullptr);
  if (auto step = RestorePipeSignal(pipe_disposition_); !step) {
    Say(step.error().Line());
    return kExitNotConfined;
  }
  // argv_ is the tail of main's, so it ends in a null pointer.
  ::execve(argv_[0], argv_.data(), environment.data());
  const int error = errno;
  (void)::signal(SIGPIPE, SIG_IGN);
  if (exec_status_.valid()) (void)!::write(exec_status_.get(), &error, sizeof(error));
  const char* hint = error == EACCES ? " (not executable, or outside every root that may be executed from)" : "";
  Say("EXEC: cannot run '" + Printable(argv_[0], 200) + "': " + ErrnoName(error) + hint);
  return kExitExecFailed;
}

}  // namespace

int Launch(int count, char** arguments, char** environment) {
  // A reader who has gone must not turn a clear exit code into a signal's.
  const sighandler_t pipe_disposition = ::signal(SIGPIPE, SIG_IGN);
  if (count < 1 || std::strcmp(arguments[0], "--") == 0) return Usage("no policy is given");
  if (count < 2 || std::strcmp(arguments[1], "--") != 0)
    return Usage(count < 2 ? "'--' and a program are missing behind the policy" : "exactly one policy goes before '--', got '" + Printable(arguments[1], 60) + "' too");
  if (count < 3) return Usage("no program is given behind '--'");
  if (arguments[2][0] != '/') return Usage("the program must be an absolute path, got '" + Printable(arguments[2], 200) + "'");

  Launcher launcher(arguments[0], std::span(arguments + 2, static_cast<size_t>(count) - 2), environment, pipe_disposition);
  for (const auto step : {&Launcher::Prepare, &Launcher::Confine, &Launcher::HandOver, &Launcher::Finish})
    if (const Step done = (launcher.*step)(); !done) {
      Say(done.error().Line());
      return kExitNotConfined;
    }
  return launcher.Exec();
}

}  // namespace oarlock::child
