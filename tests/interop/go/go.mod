module stomp-go

go 1.26.0

require github.com/go-stomp/stomp/v3 v3.1.3
