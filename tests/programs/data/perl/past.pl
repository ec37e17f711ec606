# SPDX-License-Identifier: Apache-2.0
use strict;
use warnings;
use HTTP::Tiny;
use IO::Socket::INET;

my $page = HTTP::Tiny->new->get("http://127.0.0.1:$ENV{TARGET}/");
print STDERR $page->{content} unless $page->{success};
print $page->{content} if $page->{success};
my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $ENV{TARGET}) or do {
  print STDERR "IO::Socket::INET: $!\n";
  exit 3;
};
