package rest

import (
	"bytes"
	"io"
	"net/http"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// whoAmI is a method that every key may call.
const whoAmI = "/kagzi.v1.AdminService/WhoAmI"

// Door returns next, which speaks another protocol than the API in JSON over POST, with the API's
// checks before it: the key before the body is read, and the limits of bodies and of JSON. next makes calls of its own
// with the request's context. Serve it behind a Gate.
func (a *API) Door(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := a.enter(w, r, next); err != nil {
			writeProblem(w, a.errors, err)
		}
	})
}

// enter passes a request on, or returns an error before anything was answered.
func (a *API) enter(w http.ResponseWriter, r *http.Request, next http.Handler) error {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return refuse(http.StatusMethodNotAllowed, engine.KindUnsupported, "this path takes POST")
	}
	if _, err := a.server.Authenticate(r.Context(), whoAmI); err != nil {
		return err
	}
	body, release, err := a.body(w, r)
	if err != nil {
		return err
	}
	defer release()
	if len(body) > 0 {
		if err := checkJSON(body); err != nil {
			return err
		}
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	next.ServeHTTP(timely{w}, r)
	return nil
}

// timely gives each write of an answer a deadline of its own, so that calls may take their time.
type timely struct{ http.ResponseWriter }

func (w timely) WriteHeader(code int) {
	w.allow(0)
	w.ResponseWriter.WriteHeader(code)
}

func (w timely) Write(text []byte) (int, error) {
	w.allow(len(text))
	return w.ResponseWriter.Write(text)
}

// allow gives the next write of so many bytes its time.
func (w timely) allow(size int) {
	setWriteDeadline(w.ResponseWriter, time.Now().Add(writeTime+time.Duration(size/slowest)*time.Second))
}

func (w timely) Unwrap() http.ResponseWriter { return w.ResponseWriter }
