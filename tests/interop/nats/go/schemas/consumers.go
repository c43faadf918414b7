package main

import (
	"encoding/json"
	"fmt"
)

func consumers(run run) {
	run.stream("")
	run.publish("a", "1")
	created := run.consumer("reader", `,"ack_policy":"explicit"`)
	equal(created["name"], "reader")
	verb := "CONSUMER.DURABLE.CREATE." + name + ".old"
	run.call("consumer_create", verb, consumerOf(`"durable_name":"old","ack_policy":"all"`))
	run.call("consumer_create", "CONSUMER.CREATE."+name, consumerOf(`"ack_policy":"none","mem_storage":true`))
	filtered := consumerOf(fmt.Sprintf(`"name":"filtered","ack_policy":"explicit","filter_subject":"%s.a"`, name))
	run.call("consumer_create", "CONSUMER.CREATE."+name+".filtered."+name+".a", filtered)
	for number, settings := range []string{
		`,"ack_policy":"none","deliver_policy":"last"`,
		`,"ack_policy":"explicit","deliver_policy":"new","max_waiting":10,"max_batch":5,"max_expires":1000000000`,
		`,"ack_policy":"explicit","deliver_policy":"by_start_sequence","opt_start_seq":1,"max_bytes":1000`,
		`,"ack_policy":"explicit","deliver_policy":"by_start_time","opt_start_time":"2026-01-02T03:04:05Z"`,
		fmt.Sprintf(`,"ack_policy":"explicit","deliver_policy":"last_per_subject","filter_subjects":["%s.a","%s.b"]`, name, name),
		`,"ack_policy":"explicit","ack_wait":2000000000,"max_deliver":3,"backoff":[1000000000,2000000000]`,
		`,"ack_policy":"explicit","description":"one","metadata":{"of":"tests"},"sample_freq":"50%"`,
		`,"ack_policy":"explicit","inactive_threshold":60000000000,"headers_only":true,"replay_policy":"original"`,
		`,"ack_policy":"explicit","pause_until":"2100-01-02T03:04:05Z"`,
		`,"ack_policy":"explicit","priority_policy":"overflow","priority_groups":["g"]`,
		`,"ack_policy":"explicit","priority_policy":"prioritized","priority_groups":["g"]`,
		`,"ack_policy":"explicit","deliver_subject":"` + name + `_out","deliver_group":"group"`,
		`,"ack_policy":"none","deliver_subject":"` + name + `_out","flow_control":true,"idle_heartbeat":1000000000,"rate_limit_bps":100000`,
	} {
		consumer := fmt.Sprintf("c%d", number)
		run.consumer(consumer, settings)
		run.call("consumer_info", "CONSUMER.INFO."+name+"."+consumer, "")
	}
	run.pull("reader", "")
	found := run.call("consumer_info", "CONSUMER.INFO."+name+".reader", "")
	equal(found["num_ack_pending"], json.Number("1"))
	found = run.call("consumer_names", "CONSUMER.NAMES."+name, "")
	equal(found["total"], json.Number("17"))
	run.call("consumer_names", "CONSUMER.NAMES."+name, `{"offset":100}`)
	run.call("consumer_list", "CONSUMER.LIST."+name, "")
	run.call("consumer_list", "CONSUMER.LIST."+name, `{"offset":100}`)
	run.call("consumer_reset", "CONSUMER.RESET."+name+".reader", "")
	run.call("consumer_delete", "CONSUMER.DELETE."+name+".reader", "")
	run.call("stream_info", "STREAM.INFO."+name, "")
}

func pauseAndUnpin(run run) {
	run.stream("")
	run.publish("a", "1")
	run.consumer("reader", `,"ack_policy":"explicit"`)
	pause := "CONSUMER.PAUSE." + name + ".reader"
	equal(run.call("consumer_pause", pause, `{"pause_until":"2100-01-02T03:04:05Z"}`)["paused"], true)
	run.call("consumer_info", "CONSUMER.INFO."+name+".reader", "")
	equal(run.call("consumer_pause", pause, `{"pause_until":"2020-01-02T03:04:05Z"}`)["paused"], false)
	equal(run.call("consumer_pause", pause, "")["paused"], false)
	run.consumer("pinned", `,"ack_policy":"explicit","priority_policy":"pinned_client","priority_groups":["g"]`)
	run.pull("pinned", `{"group":"g"}`)
	run.call("consumer_info", "CONSUMER.INFO."+name+".pinned", "")
	run.call("consumer_unpin", "CONSUMER.UNPIN."+name+".pinned", `{"group":"g"}`)
	run.refused(10160, "consumer_unpin", "CONSUMER.UNPIN."+name+".pinned", `{"group":"h"}`)
}

func consumerErrors(run run) {
	absent := name + "_absent"
	body := fmt.Sprintf(`{"stream_name":%q,"config":{"durable_name":"reader","ack_policy":"explicit"}}`, absent)
	run.refused(10059, "consumer_create", "CONSUMER.CREATE."+absent+".reader", body)
	run.stream("")
	run.refused(10014, "consumer_info", "CONSUMER.INFO."+name+".absent", "")
	run.refused(10014, "consumer_delete", "CONSUMER.DELETE."+name+".absent", "")
	run.refused(10014, "consumer_pause", "CONSUMER.PAUSE."+name+".absent", `{"pause_until":"2100-01-02T03:04:05Z"}`)
	run.refused(10014, "consumer_unpin", "CONSUMER.UNPIN."+name+".absent", `{"group":"g"}`)
	create := "CONSUMER.CREATE." + name + ".reader"
	run.refused(10025, "consumer_create", create, "no JSON")
	run.refused(10017, "consumer_create", create, consumerOf(`"durable_name":"other","ack_policy":"explicit"`))
	run.consumer("reader", `,"ack_policy":"explicit"`)
	config := `"durable_name":"reader","ack_policy":"explicit","description":"other"`
	existing := fmt.Sprintf(`{"stream_name":%q,"action":"create","config":{%s}}`, name, config)
	run.refused(10148, "consumer_create", create, existing)
	run.refused(10012, "consumer_create", create, consumerOf(`"durable_name":"reader","ack_policy":"none"`))
	update := fmt.Sprintf(`{"stream_name":%q,"action":"update","config":{"durable_name":"new","ack_policy":"explicit"}}`, name)
	run.refused(10149, "consumer_create", "CONSUMER.CREATE."+name+".new", update)
	equal(run.pull("reader", `{"no_wait":true}`).Header.Get("Status"), "404")
}
