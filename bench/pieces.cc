// SPDX-License-Identifier: Apache-2.0
// The pieces of a call and of a launch that happen in one process: what the gate, the record, the message and the policy cost.
#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <netinet/in.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "audit/format.h"
#include "notif/calls.h"
#include "notif/wire.h"
#include "policy/policy.h"
#include "proxyport/gate.h"

namespace oarlock {
namespace {

constexpr const char* kPolicy =
    R"({"version":1,"module":"dev.example.fetcher","ro":["/srv/bundles/fetcher"],"rw":["/srv/work/fetcher"],)"
    R"("net":"egress-allowlist","proxy_port":3128,"broker_socket":"/run/node/broker.sock",)"
    R"("env":{"keep":["PATH","LANG"],"set":{"HOME":"/srv/work/fetcher"}},"require":["filesystem","ipc"]})";

Grant SampleGrant() {
  Grant grant;
  grant.net = NetMode::kEgressAllowlist;
  grant.proxy_port = 3128;
  grant.broker_name = grant.broker_resolved = "/run/node/broker.sock";
  return grant;
}

proxyport::Address Tcp(const char* text, uint16_t port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  if (inet_pton(AF_INET, text, &name.sin_addr) != 1) std::abort();
  proxyport::Address address;
  address.size = sizeof(name);
  std::memcpy(address.bytes, &name, sizeof(name));
  return address;
}

void GateGrants(benchmark::State& state) {
  const proxyport::Gate gate(SampleGrant());
  const proxyport::Address address = Tcp("127.0.0.1", 3128);
  proxyport::SocketFacts facts;
  facts.protocol = IPPROTO_TCP;
  if (gate.JudgeConnect(address).verdict != proxyport::Decision::Verdict::kConnect) state.SkipWithError("the gate refuses its own proxy");
  for (auto _ : state) {
    benchmark::DoNotOptimize(gate.JudgeConnect(address));
    benchmark::DoNotOptimize(gate.JudgeTcpSocket(facts));
  }
}
BENCHMARK(GateGrants);

void GateRefuses(benchmark::State& state) {
  const proxyport::Gate gate(SampleGrant());
  const proxyport::Address address = Tcp("192.0.2.1", 443);
  if (gate.JudgeConnect(address).verdict != proxyport::Decision::Verdict::kRefuse) state.SkipWithError("the gate lets a stranger through");
  for (auto _ : state) benchmark::DoNotOptimize(gate.JudgeConnect(address));
}
BENCHMARK(GateRefuses);

void GateSocket(benchmark::State& state) {
  const proxyport::Gate gate(SampleGrant());
  for (auto _ : state) benchmark::DoNotOptimize(gate.JudgeSocket(AF_INET, SOCK_STREAM, 0));
}
BENCHMARK(GateSocket);

void TableLookup(benchmark::State& state) {
  const CallRow* connect = FindCall("connect");
  const auto number = static_cast<uint32_t>(Number(*connect, kNativeArch));
  for (auto _ : state) benchmark::DoNotOptimize(FindCall(kNativeArch, number));
}
BENCHMARK(TableLookup);

audit::Record SampleRecord(const audit::SessionFacts& session) {
  audit::Record record;
  record.refusal = Refusal::kTcpNotProxy;
  record.error = Describe(record.refusal).error;
  record.session = &session;
  record.nr = static_cast<uint32_t>(Number(*FindCall("connect"), kNativeArch));
  record.tid = record.task.pid = 4001;
  record.task.uid = 1001;
  record.task.name_size = 4;
  std::memcpy(record.task.name, "curl", 4);
  record.task.path_size = 13;
  std::memcpy(record.task.path, "/usr/bin/curl", 13);
  record.real_us = 1'700'000'123'456'789;
  const proxyport::Address address = Tcp("192.0.2.1", 443);
  record.address_size = static_cast<uint8_t>(address.size);
  std::memcpy(record.address, address.bytes, address.size);
  return record;
}

void RecordFormat(benchmark::State& state) {
  const audit::SessionFacts session;
  const audit::Host host;
  const audit::Record record = SampleRecord(session);
  std::vector<char> line(audit::kMaxLineBytes);
  for (auto _ : state)
    benchmark::DoNotOptimize(audit::Format(record, host, {.sequence = 7, .real_us = 1}, std::span<char, audit::kMaxLineBytes>(line)));
}
BENCHMARK(RecordFormat);

void RecordFormatAndSeal(benchmark::State& state) {
  const audit::SessionFacts session;
  const audit::Host host;
  const audit::Record record = SampleRecord(session);
  std::vector<char> line(audit::kMaxLineBytes);
  for (auto _ : state) {
    const size_t size = audit::Format(record, host, {.sequence = 7, .real_us = 1}, std::span<char, audit::kMaxLineBytes>(line));
    benchmark::DoNotOptimize(audit::Seal({line.data(), size - 1}));
  }
}
BENCHMARK(RecordFormatAndSeal);

wire::Admission SampleAdmission(const policy::Policy& policy) {
  wire::Admission admission;
  admission.module = "dev.example.fetcher";
  admission.policy_json = policy::Emit(policy);
  admission.policy_sha256 = std::string(64, 'a');
  admission.filter = ShapeName(Shape{});
  admission.grant = SampleGrant();
  admission.pid = 4000;
  admission.fds = {std::string(wire::kListenerName)};
  return admission;
}

policy::Policy SamplePolicy() {
  auto parsed = policy::Parse(kPolicy, false);
  if (!parsed) std::abort();
  return std::move(*parsed);
}

void WireEncode(benchmark::State& state) {
  const wire::Admission admission = SampleAdmission(SamplePolicy());
  for (auto _ : state) benchmark::DoNotOptimize(wire::Encode(admission));
}
BENCHMARK(WireEncode);

void WireDecode(benchmark::State& state) {
  const std::string message = wire::Encode(SampleAdmission(SamplePolicy()));
  if (!wire::Decode(message)) state.SkipWithError("the message is not understood");
  for (auto _ : state) benchmark::DoNotOptimize(wire::Decode(message));
}
BENCHMARK(WireDecode);

void PolicyParse(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(policy::Parse(kPolicy, false));
}
BENCHMARK(PolicyParse);

}  // namespace
}  // namespace oarlock

BENCHMARK_MAIN();
