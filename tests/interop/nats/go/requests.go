package main

import (
	"encoding/json"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// respond answers n by n + 1.
func respond(connection *nats.Conn, subject string) {
	must(connection.Subscribe(subject, func(request *nats.Msg) {
		number := must(strconv.Atoi(string(request.Data)))
		check(request.Respond([]byte(strconv.Itoa(number + 1))))
	}))
	check(connection.Flush())
}

func callMany(requester *nats.Conn) {
	var calls sync.WaitGroup
	for number := range 200 {
		calls.Go(func() {
			reply := must(requester.Request(name, []byte(strconv.Itoa(number)), deadline))
			equal(string(reply.Data), strconv.Itoa(number+1))
		})
	}
	calls.Wait()
}

func requestAndReply() {
	respond(connect(), name)
	callMany(connect())
}

func oldStyleRequests() {
	respond(connect(), name)
	callMany(connect(nats.UseOldRequestStyle()))
}

func noResponders() {
	for style, option := range map[string]nats.Option{
		".new": nats.Name("new"), ".old": nats.UseOldRequestStyle(),
	} {
		connection := connect(option)
		_, err := connection.Request(name+style, nil, deadline)
		equal(err, nats.ErrNoResponders)
		respond(connection, name+style)
		reply := must(connection.Request(name+style, []byte("1"), deadline))
		equal(string(reply.Data), "2")
	}
}

func manyReplies() {
	requester := connect()
	const responders = 5
	for number := range responders {
		connection := connect()
		must(connection.Subscribe(name, func(request *nats.Msg) {
			check(request.Respond([]byte(strconv.Itoa(number))))
		}))
		check(connection.Flush())
	}
	inbox := nats.NewInbox()
	replies := subscribe(requester, inbox)
	check(requester.PublishRequest(name, inbox, []byte("who is there?")))
	seen := map[string]bool{}
	for range responders {
		seen[string(must(replies.NextMsg(deadline)).Data)] = true
	}
	equal(len(seen), responders)
	equal(pending(requester, replies), 0)
}

func service() {
	const instances = 3
	for range instances {
		connection := connect()
		server := must(micro.AddService(connection, micro.Config{Name: name, Version: "1.2.3"}))
		check(server.AddEndpoint("double", micro.HandlerFunc(func(request micro.Request) {
			number, err := strconv.Atoi(string(request.Data()))
			if err != nil {
				check(request.Error("400", "not a number", nil))
				return
			}
			check(request.Respond([]byte(strconv.Itoa(2 * number))))
		}), micro.WithEndpointSubject(name+".double")))
		check(connection.Flush())
	}
	client := connect()
	for number := range 30 {
		reply := must(client.Request(name+".double", []byte(strconv.Itoa(number)), deadline))
		equal(string(reply.Data), strconv.Itoa(2*number))
	}
	wrong := must(client.Request(name+".double", []byte("x"), deadline))
	equal(wrong.Header.Get(micro.ErrorCodeHeader), "400")
	equal(wrong.Header.Get(micro.ErrorHeader), "not a number")
	requests := 0
	for _, verb := range []micro.Verb{micro.PingVerb, micro.InfoVerb, micro.StatsVerb} {
		inbox := nats.NewInbox()
		replies := subscribe(client, inbox)
		check(client.PublishRequest(must(micro.ControlSubject(verb, name, "")), inbox, nil))
		seen := map[string]bool{}
		for range instances {
			var stats micro.Stats
			check(json.Unmarshal(must(replies.NextMsg(deadline)).Data, &stats))
			equal(stats.Name, name)
			equal(stats.Version, "1.2.3")
			seen[stats.ID] = true
			for _, endpoint := range stats.Endpoints {
				requests += endpoint.NumRequests
			}
		}
		equal(len(seen), instances)
		equal(pending(client, replies), 0)
	}
	equal(requests, 31)
}
