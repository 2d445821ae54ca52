package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// weather is a tool.
func weather(_ context.Context, city string) (string, error) {
	log.Println("looking out of the window in", city)
	return "17 degrees and rain in " + city, nil
}

// stubModel stands for a language model: it asks for the weather first, and then says it, word by
// word.
type stubModel struct{ pause time.Duration } // between two words

func (m stubModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var conversation []Message
	if err := json.NewDecoder(r.Body).Decode(&conversation); err != nil || len(conversation) == 0 {
		http.Error(w, "want a conversation", http.StatusBadRequest)
		return
	}
	log.Println("the model is called with", len(conversation), "messages")
	last := conversation[len(conversation)-1]
	if last.Role == "user" {
		city := last.Text[strings.LastIndex(last.Text, " ")+1:]
		send(w, Message{Tool: &ToolCall{Name: "weather", Input: strings.TrimRight(city, "?")}})
	} else {
		for _, word := range strings.Fields("It is " + last.Text + ".") {
			send(w, Message{Text: word + " "})
			time.Sleep(m.pause)
		}
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// send streams one part of the reply.
func send(w http.ResponseWriter, part Message) {
	data, err := json.Marshal(part)
	if err != nil {
		panic(err) // a Message is plain text
	}
	fmt.Fprintf(w, "data: %s\n\n", data)
	_ = http.NewResponseController(w).Flush() // where it cannot, the part comes later
}

// serveModel serves the stub on a free port of this machine.
func serveModel() (url string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() { log.Fatal(http.Serve(l, stubModel{pause: 500 * time.Millisecond})) }()
	return "http://" + l.Addr().String(), nil
}

// ask starts a run, prints its note whenever that changes, and then the answer.
func ask(ctx context.Context, question string) error {
	c, err := kagzi.NewClient(kagzi.ClientOptions{})
	if err != nil {
		return err
	}
	defer c.Close()
	run, err := kagzi.Start(ctx, c, "answer", question, kagzi.StartOptions{Queue: queue})
	if err != nil {
		return err
	}
	fmt.Println("started", run.ID())
	watching, stop := context.WithCancel(ctx)
	go printNotes(watching, run)
	answer, err := kagzi.Result[string](ctx, run)
	stop()
	if err != nil {
		return err
	}
	fmt.Println(answer)
	return nil
}

func printNotes(ctx context.Context, run *kagzi.Run) {
	for note := ""; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(300 * time.Millisecond):
		}
		if d, err := run.Describe(ctx); err == nil && d.Note != note {
			note = d.Note
			fmt.Println("…", note)
		}
	}
}
