package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

func flushAndRoundTrip() {
	connection := connect()
	check(connection.Flush())
	equal(must(connection.RTT()) > 0, true)
}

func noEcho() {
	silent, other := connect(nats.NoEcho()), connect()
	own, others := subscribe(silent, name), subscribe(other, name)
	publish(silent, name, "from the one")
	check(silent.Flush())
	publish(other, name, "from the other")
	equal(bodies(others, 2), []string{"from the one", "from the other"})
	equal(bodies(own, 1), []string{"from the other"})
	equal(pending(silent, own), 0)
}

func verboseAndPedantic() {
	strict := func(options *nats.Options) error {
		options.Verbose, options.Pedantic = true, true
		return nil
	}
	connection := connect(strict)
	subscription := subscribe(connection, name)
	publish(connection, name, "1", "2", "3")
	equal(bodies(subscription, 3), []string{"1", "2", "3"})
	check(subscription.Unsubscribe())
	respond(connection, name+".service")
	equal(string(must(connection.Request(name+".service", []byte("1"), deadline)).Data), "2")
}

func invalidSubjects() {
	connection := connect()
	equal(errors.Is(connection.Publish("", nil), nats.ErrBadSubject), true)
	for _, subject := range []string{"a..b", ".a", "a.", "a b", ""} {
		_, err := connection.SubscribeSync(subject)
		equal(errors.Is(err, nats.ErrBadSubject), true)
	}
	// What this client does not see is for the broker to refuse. The client then closes, as it
	// does at every error that it does not know to be harmless.
	closed := make(chan bool, 1)
	careless := connect(nats.ClosedHandler(func(*nats.Conn) { closed <- true }))
	must(careless.SubscribeSync("a.>.b"))
	wait(closed)
	equal(fmt.Sprint(careless.LastError()), "nats: Invalid Subject")
}

func whatInfoSays() {
	connection := connect(nats.Name("a name of \"odd\" characters: größe"))
	equal(connection.ConnectedServerId() != "", true)
	equal(connection.ConnectedServerName() != "", true)
	equal(connection.ConnectedServerVersion() != "", true)
	equal(connection.HeadersSupported(), true)
	equal(connection.TLSRequired(), false)
	equal(connection.MaxPayload() > 0, true)
	equal(must(connection.GetClientIP()).String(), "127.0.0.1")
	own, other := must(connection.GetClientID()), must(connect().GetClientID())
	equal(own != other, true)
}

func rightPassword() {
	check(connect(nats.UserInfo("guest", "guest")).Flush())
}

func wrongPassword() {
	for _, login := range []nats.Option{
		nats.UserInfo("guest", "wrong"), nats.UserInfo("nobody", "guest"), nats.UserInfo("guest", ""),
	} {
		_, err := nats.Connect(url, login, nats.Timeout(deadline))
		equal(errors.Is(err, nats.ErrAuthorization), true)
	}
}

func rightToken() {
	check(connect(nats.Token("secret")).Flush())
}

func wrongToken() {
	_, err := nats.Connect(url, nats.Token("wrong"), nats.Timeout(deadline))
	equal(errors.Is(err, nats.ErrAuthorization), true)
}

func reconnect() {
	back := make(chan bool, 2)
	eager := []nats.Option{
		nats.MaxReconnects(-1), nats.ReconnectWait(20 * time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.ReconnectHandler(func(*nats.Conn) { back <- true }),
	}
	subscriber, publisher := connect(eager...), connect(eager...)
	plain := subscribe(subscriber, name)
	group := must(subscriber.QueueSubscribeSync(name, "group"))
	limited := subscribe(subscriber, name)
	check(limited.AutoUnsubscribe(3))
	respondTo := name + ".service"
	must(subscriber.Subscribe(respondTo, func(request *nats.Msg) { check(request.Respond(nil)) }))
	check(subscriber.Flush())
	publish(publisher, name, "before")
	for _, subscription := range []*nats.Subscription{plain, group, limited} {
		equal(bodies(subscription, 1), []string{"before"})
	}
	must(publisher.Request(respondTo, nil, deadline))
	fmt.Println("ready")
	wait(back)
	wait(back)
	check(subscriber.Flush())
	publish(publisher, name, "1", "2", "3")
	for _, subscription := range []*nats.Subscription{plain, group} {
		equal(bodies(subscription, 3), []string{"1", "2", "3"})
	}
	equal(bodies(limited, 2), []string{"1", "2"})
	must(publisher.Request(respondTo, nil, deadline))
}

func lameDuck() {
	told := make(chan bool, 1)
	must(nats.Connect(url, nats.LameDuckModeHandler(func(*nats.Conn) { told <- true })))
	fmt.Println("ready")
	wait(told)
}
