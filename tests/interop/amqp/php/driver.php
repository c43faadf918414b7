<?php
// Conversations of php-amqplib with a broker, one a scenario.
//
//     php driver.php SCENARIO URL NAME
//
// A scenario ends well by returning and badly by throwing; waiting is always for an event.

declare(strict_types=1);

require_once 'PhpAmqpLib/autoload.php';

use PhpAmqpLib\Channel\AMQPChannel;
use PhpAmqpLib\Connection\AMQPStreamConnection;
use PhpAmqpLib\Exception\AMQPBasicCancelException;
use PhpAmqpLib\Exception\AMQPProtocolChannelException;
use PhpAmqpLib\Message\AMQPMessage;
use PhpAmqpLib\Wire\AMQPTable;

const DEADLINE_S = 100;

[, $scenario, $url, $name] = $argv;

/** Opens a channel on a connection of its own. */
function channel(): AMQPChannel
{
    global $url;
    $place = parse_url($url);
    $vhost = rawurldecode(substr($place['path'] ?? '', 1)) ?: '/';
    return (new AMQPStreamConnection($place['host'], $place['port'], 'guest', 'guest', $vhost))->channel();
}

function expect(mixed $came, mixed $wanted): void
{
    if ($came !== $wanted) {
        throw new Exception(var_export($came, true) . ' came, and not ' . var_export($wanted, true));
    }
}

/** Collects what comes from a queue, and gives how to wait for the next. */
function consume(AMQPChannel $channel, string $queue, bool $noAck = false): Closure
{
    $arrived = [];
    $put = function (AMQPMessage $message) use (&$arrived) {
        $arrived[] = $message;
    };
    $channel->basic_consume($queue, '', false, $noAck, false, false, $put);
    return function () use (&$arrived, $channel): AMQPMessage {
        while (!$arrived) {
            $channel->wait(null, false, DEADLINE_S);
        }
        return array_shift($arrived);
    };
}

/** Declares a queue that is neither durable nor exclusive. */
function declare_queue(AMQPChannel $channel, string $queue, array $arguments = []): void
{
    $channel->queue_declare($queue, false, false, false, false, false, new AMQPTable($arguments));
}

function ready(AMQPChannel $channel, string $queue): int
{
    return $channel->queue_declare($queue, true)[1];
}

/** Gives the code of the error with which the broker ends a channel. */
function refused(Closure $act): int
{
    try {
        $act();
    } catch (AMQPProtocolChannelException $error) {
        return $error->amqp_reply_code;
    }
    throw new Exception('it was not refused');
}

$scenarios = [
    'confirms' => function () use ($name) {
        $channel = channel();
        $channel->exchange_declare($name, 'topic', false, true, false);
        $channel->queue_declare($name, false, true, false, false);
        $channel->queue_bind($name, $name, 'number.*');
        $channel->confirm_select();
        $confirmed = 0;
        $channel->set_ack_handler(function () use (&$confirmed) {
            $confirmed++;
        });
        for ($number = 0; $number < 100; $number++) {
            $channel->basic_publish(new AMQPMessage("$number", ['delivery_mode' => 2]), $name, "number.$number");
        }
        $channel->wait_for_pending_acks(DEADLINE_S);
        expect($confirmed, 100);
        $next = consume($channel, $name);
        for ($number = 0; $number < 100; $number++) {
            $message = $next();
            expect([$message->body, $message->isRedelivered()], ["$number", false]);
            $message->ack();
        }
        expect(ready($channel, $name), 0);
    },

    'mandatory_return' => function () use ($name) {
        $channel = channel();
        $channel->confirm_select();
        $returned = [];
        $channel->set_return_listener(function ($code, $text, $exchange, $key, $message) use (&$returned) {
            $returned[] = [$code, $text, $message->body];
        });
        $channel->basic_publish(new AMQPMessage('back'), '', $name, true);
        $channel->wait_for_pending_acks_returns(DEADLINE_S);
        expect($returned, [[312, 'NO_ROUTE', 'back']]);
    },

    'prefetch_and_requeue' => function () use ($name) {
        $channel = channel();
        $channel->basic_qos(0, 2, false);
        declare_queue($channel, $name);
        for ($number = 0; $number < 4; $number++) {
            $channel->basic_publish(new AMQPMessage("$number"), '', $name);
        }
        $next = consume($channel, $name);
        [$first, $second] = [$next(), $next()];
        expect(ready($channel, $name), 2);
        $first->nack(true);
        $again = $next();
        expect([$again->body, $again->isRedelivered()], ['0', true]);
        $second->ack();
        $again->ack();
        expect([$next()->body, $next()->body], ['2', '3']);
    },

    'direct_reply_to' => function () use ($name) {
        [$requester, $responder] = [channel(), channel()];
        declare_queue($responder, $name);
        $request = consume($responder, $name, true);
        $reply = consume($requester, 'amq.rabbitmq.reply-to', true);
        for ($number = 0; $number < 10; $number++) {
            $properties = ['reply_to' => 'amq.rabbitmq.reply-to', 'correlation_id' => "$number"];
            $requester->basic_publish(new AMQPMessage("$number", $properties), '', $name);
            $asked = $request();
            $answer = new AMQPMessage($asked->body . $asked->body, ['correlation_id' => $asked->get('correlation_id')]);
            $responder->basic_publish($answer, '', $asked->get('reply_to'));
            $answered = $reply();
            expect([$answered->body, $answered->get('correlation_id')], ["$number$number", "$number"]);
        }
    },

    'transactions' => function () use ($name) {
        [$channel, $reader] = [channel(), channel()];
        declare_queue($channel, $name);
        $channel->tx_select();
        $channel->basic_publish(new AMQPMessage('dropped'), '', $name);
        $channel->tx_rollback();
        $channel->basic_publish(new AMQPMessage('kept'), '', $name);
        expect(ready($reader, $name), 0);
        $channel->tx_commit();
        expect(ready($reader, $name), 1);
    },

    'dead_letters' => function () use ($name) {
        $channel = channel();
        declare_queue($channel, "$name.dead");
        declare_queue($channel, $name, [
            'x-dead-letter-exchange' => '', 'x-dead-letter-routing-key' => "$name.dead", 'x-max-length' => 10,
        ]);
        $channel->basic_publish(new AMQPMessage('bad'), '', $name);
        consume($channel, $name)()->reject(false);
        $headers = consume($channel, "$name.dead", true)()->get('application_headers')->getNativeData();
        $death = $headers['x-death'][0];
        expect([$death['queue'], $death['reason'], $death['count']], [$name, 'rejected', 1]);
        expect([$death['exchange'], $death['routing-keys']], ['', [$name]]);
        expect($headers['x-first-death-queue'], $name);
    },

    'headers' => function () use ($name) {
        $channel = channel();
        declare_queue($channel, $name);
        $sent = [
            'text' => 'é', 'true' => true, 'small' => -5, 'large' => 1 << 40, 'nothing' => null,
            'table' => ['a' => ['b' => [1, 'c']]], 'list' => [1, 'a', ['b' => null]],
        ];
        $channel->basic_publish(new AMQPMessage('', ['application_headers' => new AMQPTable($sent)]), '', $name);
        $came = consume($channel, $name, true)()->get('application_headers')->getNativeData();
        expect($came, $sent);
    },

    'exclusive_queue' => function () use ($name) {
        [$owner, $other] = [channel(), channel()];
        $owner->queue_declare($name, false, false, true, false);
        expect(refused(fn () => $other->queue_declare($name, true)), 405);
        $owner->queue_declare("$name.auto", false, false, false, true);
        $owner->basic_cancel($owner->basic_consume("$name.auto"));
        expect(refused(fn () => $owner->queue_declare("$name.auto", true)), 404);
    },

    'large_body' => function () use ($name) {
        $channel = channel();
        declare_queue($channel, $name);
        $body = substr(str_repeat(implode('', array_map('chr', range(0, 250))), 4000), 0, 1_000_000);
        $channel->basic_publish(new AMQPMessage($body), '', $name);
        expect(consume($channel, $name, true)()->body === $body, true);
    },

    'cancelled' => function () use ($name) {
        $channel = channel();
        declare_queue($channel, $name);
        $next = consume($channel, $name);
        channel()->queue_delete($name);
        try {
            $next();
        } catch (AMQPBasicCancelException $cancel) {
            return;
        }
        throw new Exception('it was not cancelled');
    },
];

set_time_limit(DEADLINE_S);
$scenarios[$scenario]();
