# SPDX-License-Identifier: Apache-2.0
use strict;
use warnings;
use HTTP::Tiny;
use IPC::Open3;
use Socket;

my $page = HTTP::Tiny->new->get("http://127.0.0.1:$ENV{ORIGIN}/file.txt");
die "$page->{status} $page->{content}" unless $page->{success};
print "page: $page->{content}";

socketpair(my $ours, my $theirs, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die "socketpair: $!";
my $child = fork // die "fork: $!";
if ($child == 0) { close $ours; syswrite $theirs, "from the child\n"; exit 7; }
close $theirs;
print "pair: ", scalar <$ours>;
waitpid $child, 0;
print "status: ", $? >> 8, "\n";

my $pid = open3(my $in, my $out, undef, "tr", "a-z", "A-Z");
print $in "pipe";
close $in;
print "open3: ", join("", <$out>), "\n";
waitpid $pid, 0;

open my $file, ">", "out.txt" or die "out.txt: $!";
flock $file, 2 or die "flock: $!";
print $file map { "$_\n" } sort { $b <=> $a } 1 .. 5;
close $file;
print "lines: ", (stat "out.txt")[7], "\n";
my $seen = 0;
local $SIG{ALRM} = sub { $seen = 1 };
alarm 1;
select undef, undef, undef, 5;
print "alarm: $seen\n";
