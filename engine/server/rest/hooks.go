package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	maxHookBody = 1 << 20 // bytes

	// Deliveries that are read or handled at once. Anyone can begin one, so they do not use the limits
	// of the API.
	maxDeliveries       = 128
	maxCallerDeliveries = 64 // of one address
)

// Deliverer verifies deliveries to hooks and starts their runs. D is a verified delivery.
type Deliverer[D any] interface {
	// VerifyDelivery returns an error of engine.KindNoKey, always the same one, for an unknown hook
	// and for a wrong signature.
	VerifyDelivery(ctx context.Context, hook string, header http.Header, body []byte) (D, error)
	Start(ctx context.Context, d D, input *kagziv1.Payload) (*kagziv1.StartWorkflowResponse, error)
}

// Hooks returns the handler of deliveries: POST /hooks/{hook_id}. Serve it behind Gate.Signed.
func Hooks[D any](to Deliverer[D], log *slog.Logger) http.Handler {
	h := &hooks[D]{to: to, errors: &wire.Errors{Log: log, Now: time.Now}, callers: map[string]int{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h.deliver(w, r); err != nil {
			writeProblem(w, h.errors, err)
		}
	})
}

type hooks[D any] struct {
	to     Deliverer[D]
	errors *wire.Errors

	mu      sync.Mutex
	callers map[string]int // deliveries by address
	open    int
}

// deliver answers a delivery, or returns an error before it has answered. Until the signature is
// verified, no answer depends on whether the hook exists.
func (h *hooks[D]) deliver(w http.ResponseWriter, r *http.Request) error {
	id, ok := strings.CutPrefix(r.URL.EscapedPath(), engine.HookPath)
	switch {
	case !ok || id == "" || strings.Contains(id, "/"):
		return refuse(http.StatusNotFound, engine.KindNotFound, "nothing has this path; a hook's is /hooks/ and its id")
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return refuse(http.StatusMethodNotAllowed, engine.KindUnsupported, "a hook takes POST")
	}
	leave, err := h.enter(r)
	if err != nil {
		return err
	}
	defer leave()
	body, err := hookBody(w, r)
	if err != nil {
		return err
	}
	delivery, err := h.to.VerifyDelivery(r.Context(), id, r.Header, body)
	if err != nil {
		return err
	}
	input, err := hookInput(r.Header, body)
	if err != nil {
		return err
	}
	answer, err := h.to.Start(r.Context(), delivery, input)
	if err != nil {
		return err
	}
	text, err := encode(answer)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", jsonType)
	write(w, http.StatusOK, append(text, '\n'))
	return nil
}

var errDeliveries = &engine.Error{Kind: engine.KindUnavailable, RetryAfter: time.Second,
	Message: "too many deliveries arrive at once; send this one again"}

// enter counts a delivery. Call leave at its end.
func (h *hooks[D]) enter(r *http.Request) (leave func(), err error) {
	caller, _, _ := net.SplitHostPort(r.RemoteAddr)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open >= maxDeliveries || h.callers[caller] >= maxCallerDeliveries {
		return nil, errDeliveries
	}
	h.open++
	h.callers[caller]++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.open--
		if h.callers[caller]--; h.callers[caller] == 0 {
			delete(h.callers, caller)
		}
	}, nil
}

// hookBody reads the body of a delivery whole.
func hookBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > maxHookBody {
		return nil, tooLong(maxHookBody)
	}
	size := max(r.ContentLength, 0)
	if r.ContentLength < 0 {
		size = maxHookBody
	}
	setReadDeadline(w, time.Now().Add(bodyTime+time.Duration(size/slowest)*time.Second))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxHookBody))
	if err != nil {
		return nil, bodyError(err)
	}
	return body, nil
}

// hookInput returns the input of a delivery's run: its body byte for byte if it is JSON, otherwise
// {"base64": …, "content_type": …}, because workers read inputs as JSON. Without a body there is none.
func hookInput(header http.Header, body []byte) (*kagziv1.Payload, error) {
	if len(body) == 0 {
		return nil, nil
	}
	kind, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	if kind == jsonType || strings.HasSuffix(kind, "+json") {
		if err := checkJSON(body); err != nil {
			return nil, err
		}
	} else {
		var err error
		body, err = json.Marshal(struct {
			Data []byte `json:"base64"`
			Kind string `json:"content_type,omitempty"`
		}{body, kind})
		if err != nil {
			return nil, err
		}
	}
	return &kagziv1.Payload{Data: body, Metadata: map[string]string{"content-type": jsonType}}, nil
}

// checkJSON returns an error unless a text is JSON that the API takes too.
func checkJSON(text []byte) error {
	if !utf8.Valid(text) {
		return engine.Invalid("body", "is not valid UTF-8")
	}
	if err := syntax(text); err != nil {
		return err
	}
	s := scanner{in: bytes.TrimSpace(text)}
	_, err := s.raw()
	return err
}
