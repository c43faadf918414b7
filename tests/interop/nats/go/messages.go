package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

func publishAndSubscribe() {
	publisher, subscriber := connect(), connect()
	subscription := subscribe(subscriber, name)
	everyByte := make([]byte, 4096)
	for index := range everyByte {
		everyByte[index] = byte(index)
	}
	for _, body := range [][]byte{[]byte("größe 🦀"), {}, everyByte, []byte("\r\nPING\r\n")} {
		check(publisher.Publish(name, body))
		message := must(subscription.NextMsg(deadline))
		equal(message.Subject, name)
		equal(message.Reply, "")
		equal(len(message.Header), 0)
		equal(bytes.Equal(message.Data, body), true)
	}
}

func wildcards() {
	publisher, subscriber := connect(), connect()
	expected := map[string][]string{
		"*":     {"a", "end"},
		">":     {"a", "a.b", "a.b.c", "b.b.c", "b.b.d.c", "end"},
		"a.*":   {"a.b"},
		"*.b.c": {"a.b.c", "b.b.c"},
		"a.>":   {"a.b", "a.b.c"},
		"*.*.>": {"a.b.c", "b.b.c", "b.b.d.c"},
		"a.*.c": {"a.b.c"},
		"b*.b":  nil,
	}
	subscriptions := map[string]*nats.Subscription{}
	for pattern := range expected {
		subscriptions[pattern] = subscribe(subscriber, name+"."+pattern)
	}
	for _, subject := range expected[">"] {
		publish(publisher, name+"."+subject, "")
	}
	check(publisher.Flush())
	for pattern, subjects := range expected {
		subscription := subscriptions[pattern]
		for _, subject := range subjects {
			equal(must(subscription.NextMsg(deadline)).Subject, name+"."+subject)
		}
		equal(pending(subscriber, subscription), 0)
	}
}

func headers() {
	publisher, subscriber := connect(), connect()
	subscription := subscribe(subscriber, name)
	sent := nats.Header{
		"Several":        {"one", "two", "one", ""},
		"Empty":          {""},
		"lower-case":     {"kept"},
		"LOWER-case":     {"another"},
		"Odd!#$%&'*+.^_": {"a:b::c; d=\"e\" \\ \t f"},
		"Text":           {"größe 🦀"},
		"Long":           {strings.Repeat("x", 8192)},
	}
	for _, body := range []string{"body", ""} {
		check(publisher.PublishMsg(&nats.Msg{Subject: name, Header: sent, Data: []byte(body)}))
		message := must(subscription.NextMsg(deadline))
		equal(message.Header, sent)
		equal(string(message.Data), body)
	}
}

func largeMessages() {
	publisher, subscriber := connect(), connect()
	subscription := subscribe(subscriber, name)
	size := int(publisher.MaxPayload())
	equal(size >= 1<<20, true)
	for number := range 5 {
		check(publisher.Publish(name, bytes.Repeat([]byte{byte(number)}, 1<<20)))
	}
	for number := range 5 {
		body := must(subscription.NextMsg(deadline)).Data
		equal(bytes.Equal(body, bytes.Repeat([]byte{byte(number)}, 1<<20)), true)
	}
}

func maxPayload() {
	connection := connect()
	subscription := subscribe(connection, name)
	size := int(connection.MaxPayload())
	equal(connection.Publish(name, make([]byte, size+1)), nats.ErrMaxPayload)
	check(connection.Publish(name, make([]byte, size)))
	equal(len(must(subscription.NextMsg(deadline)).Data), size)
}

func tenThousandInOrder() {
	publisher, subscriber := connect(), connect()
	subscription := subscribe(subscriber, name)
	for number := range 10000 {
		publish(publisher, name, strconv.Itoa(number))
	}
	for number := range 10000 {
		equal(string(must(subscription.NextMsg(deadline)).Data), strconv.Itoa(number))
	}
}

func manyConnections() {
	const count = 20
	var connections []*nats.Conn
	var subscriptions []*nats.Subscription
	for number := range count {
		connections = append(connections, connect(nats.Name(fmt.Sprint("connection ", number))))
		subscriptions = append(subscriptions, subscribe(connections[number], name))
	}
	for _, connection := range connections {
		publish(connection, name, "hello")
		check(connection.Flush())
	}
	for number, subscription := range subscriptions {
		bodies(subscription, count)
		equal(pending(connections[number], subscription), 0)
	}
}
