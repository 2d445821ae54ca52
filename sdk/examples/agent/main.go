// Command agent answers questions with a language model and tools. Each call of the model and each
// call of a tool is a step: after a crash the agent goes on with the recorded answers and pays for
// none twice.
//
//	agent                   runs a worker, and a model of its own that stands for a real one
//	agent ask QUESTION...   starts a run, shows its progress and prints the answer
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

const (
	queue    = "agents"
	maxTurns = 8
)

// Message is one entry of the conversation; Tool is set where the model wants a tool to be called.
type Message struct {
	Role string    `json:"role"` // user, model or tool
	Text string    `json:"text,omitempty"`
	Tool *ToolCall `json:"tool,omitempty"`
}

type ToolCall struct {
	Name  string `json:"name"`
	Input string `json:"input"`
}

// Agent calls a model over HTTP, and functions of its own.
type Agent struct {
	URL   string
	HTTP  *http.Client
	Tools map[string]func(ctx context.Context, input string) (string, error)
}

// Answer is the workflow. The conversation is a local variable: every replay builds it again from
// the recorded results of the steps. The steps are named model, model:2, … and tool:weather and so
// on.
func (a *Agent) Answer(ctx kagzi.Context, question string) (string, error) {
	conversation := []Message{{Role: "user", Text: question}}
	for range maxTurns {
		reply, err := kagzi.Step(ctx, "model", func(stepCtx context.Context) (Message, error) {
			return a.model(stepCtx, conversation, func(soFar string) { kagzi.Note(ctx, soFar) })
		}, kagzi.Retry{Attempts: 5}, kagzi.Timeout(2*time.Minute))
		if err != nil {
			return "", err
		}
		conversation = append(conversation, reply)
		if reply.Tool == nil {
			return reply.Text, nil
		}
		conversation = append(conversation, Message{Role: "tool", Text: a.call(ctx, *reply.Tool)})
	}
	return "", kagzi.NonRetryable(fmt.Errorf("no answer within %d turns", maxTurns))
}

// call runs a tool. The model hears of a failure, and may try something else.
func (a *Agent) call(ctx kagzi.Context, call ToolCall) string {
	tool := a.Tools[call.Name]
	if tool == nil { // a name that the model made up is no good name for a step
		return "error: there is no tool of that name"
	}
	result, err := kagzi.Step(ctx, "tool:"+call.Name, func(ctx context.Context) (string, error) {
		return tool(ctx, call.Input)
	})
	var failed *kagzi.StepError
	if errors.As(err, &failed) {
		return "error: " + failed.Message
	}
	return result
}

// model sends the conversation and reads the reply as it is streamed. A stream that breaks off is
// an error, and the step is run again.
func (a *Agent) model(
	ctx context.Context, conversation []Message, progress func(soFar string),
) (reply Message, err error) {
	body, err := json.Marshal(conversation)
	if err != nil {
		return reply, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.URL, bytes.NewReader(body))
	if err != nil {
		return reply, err
	}
	req.Header.Set("Idempotency-Key", kagzi.IdempotencyKey(ctx))
	resp, err := a.HTTP.Do(req)
	if err != nil {
		return reply, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusTooManyRequests:
		return reply, kagzi.RetryAfter(errors.New(resp.Status), 30*time.Second)
	case resp.StatusCode != http.StatusOK:
		return reply, errors.New(resp.Status)
	}
	reply.Role = "model"
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			return reply, nil
		}
		var part Message
		if err := json.Unmarshal([]byte(data), &part); err != nil {
			return reply, err
		}
		reply.Text += part.Text
		if part.Tool != nil {
			reply.Tool = part.Tool
		}
		progress(reply.Text)
	}
	return reply, errors.New("the model's stream broke off")
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "ask" {
		if err := ask(context.Background(), strings.Join(os.Args[2:], " ")); err != nil {
			log.Fatal(err)
		}
		return
	}
	url, err := serveModel()
	if err != nil {
		log.Fatal(err)
	}
	agent := &Agent{URL: url, HTTP: http.DefaultClient, Tools: map[string]func(context.Context, string) (string, error){
		"weather": weather,
	}}
	w := kagzi.NewWorker(kagzi.WorkerOptions{Queue: queue})
	kagzi.Handle(w, "answer", agent.Answer)
	if err := w.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
