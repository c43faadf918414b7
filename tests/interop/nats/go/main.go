// Conversations of nats.go with a broker, one a scenario.
//
//	driver-go SCENARIO URL NAME
//
// A scenario ends well by returning; whatever is wrong panics. Waiting is always for an event.
package main

import (
	"fmt"
	"os"
	"reflect"
	"time"

	"github.com/nats-io/nats.go"
)

// deadline is when to give up on an event that must come; it decides nothing else.
const deadline = 100 * time.Second

var url, name = os.Args[2], os.Args[3]

var scenarios = map[string]func(){
	"publish_and_subscribe":      publishAndSubscribe,
	"wildcards":                  wildcards,
	"queue_groups":               queueGroups,
	"request_and_reply":          requestAndReply,
	"old_style_requests":         oldStyleRequests,
	"no_responders":              noResponders,
	"many_replies":               manyReplies,
	"service":                    service,
	"headers":                    headers,
	"unsubscribe":                unsubscribe,
	"unsubscribe_after_a_number": unsubscribeAfterANumber,
	"drain_a_subscription":       drainASubscription,
	"drain_a_connection":         drainAConnection,
	"flush_and_round_trip":       flushAndRoundTrip,
	"max_payload":                maxPayload,
	"no_echo":                    noEcho,
	"verbose_and_pedantic":       verboseAndPedantic,
	"invalid_subjects":           invalidSubjects,
	"large_messages":             largeMessages,
	"ten_thousand_in_order":      tenThousandInOrder,
	"what_info_says":             whatInfoSays,
	"many_connections":           manyConnections,
	"right_password":             rightPassword,
	"wrong_password":             wrongPassword,
	"right_token":                rightToken,
	"wrong_token":                wrongToken,
	"reconnect":                  reconnect,
	"lame_duck":                  lameDuck,
}

func main() {
	scenario, known := scenarios[os.Args[1]]
	if !known {
		fmt.Fprintf(os.Stderr, "unknown scenario `%s`\n", os.Args[1])
		os.Exit(2)
	}
	scenario()
}

// connect opens a connection whose asynchronous errors end the program unless options take them.
func connect(options ...nats.Option) *nats.Conn {
	strict := nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { panic(err) })
	return must(nats.Connect(url, append([]nats.Option{strict, nats.Timeout(deadline)}, options...)...))
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func equal(actual, expected any) {
	if !reflect.DeepEqual(actual, expected) {
		panic(fmt.Sprintf("%#v instead of %#v", actual, expected))
	}
}

// subscribe returns once the broker knows the subscription.
func subscribe(connection *nats.Conn, subject string) *nats.Subscription {
	subscription := must(connection.SubscribeSync(subject))
	check(connection.Flush())
	return subscription
}

func publish(connection *nats.Conn, subject string, bodies ...string) {
	for _, body := range bodies {
		check(connection.Publish(subject, []byte(body)))
	}
}

// bodies gives the next messages.
func bodies(subscription *nats.Subscription, count int) []string {
	var all []string
	for range count {
		all = append(all, string(must(subscription.NextMsg(deadline)).Data))
	}
	return all
}

// pending says how many messages wait that had been sent before: their connection is asked for
// an answer, which comes behind them.
func pending(connection *nats.Conn, subscription *nats.Subscription) int {
	check(connection.Flush())
	count, _, err := subscription.Pending()
	check(err)
	return count
}

func wait[T any](channel <-chan T) T {
	select {
	case value := <-channel:
		return value
	case <-time.After(deadline):
		panic("an event did not come")
	}
}
