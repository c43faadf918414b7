# Net::Stomp's own ways: it ends a frame with NUL and a line feed, and never says `accept-version`.
#
#   perl conversation.pl PORT NAME

use strict;
use warnings;
use Net::Stomp;

my ($port, $name) = @ARGV;
my $queue = "/queue/$name.perl";

sub check {
    my ($claim, $holds) = @_;
    die "not so: $claim\n" unless $holds;
}

my $stomp = Net::Stomp->new({ hostname => '127.0.0.1', port => $port, timeout => 100 });
my $connected = $stomp->connect({ login => 'guest', passcode => 'guest' });
check 'the login is taken', $connected->command eq 'CONNECTED';
check 'a receipt comes',
    $stomp->send_with_receipt(
        { destination => $queue, body => "one\0two", persistent => 'true', bytes_message => 1 });
$stomp->subscribe({ destination => $queue, ack => 'client' });
my $message = $stomp->receive_frame;
check 'the body is whole', $message->body eq "one\0two";
$stomp->nack({ frame => $message });
$message = $stomp->receive_frame;
check 'it comes again', $message->headers->{redelivered} eq 'true';
$stomp->ack({ frame => $message });

# A transaction whose receipts are asked for at its end.
my $send = sub { $stomp->send_frame(Net::Stomp::Frame->new({ @_ })) };
$send->(command => 'BEGIN', headers => { transaction => 't' });
$stomp->send({ destination => $queue, body => 'in a transaction', transaction => 't' });
$send->(command => 'COMMIT', headers => { transaction => 't' });
$message = $stomp->receive_frame;
check 'what was committed comes', $message->body eq 'in a transaction';
$stomp->ack({ frame => $message });
$stomp->disconnect;
