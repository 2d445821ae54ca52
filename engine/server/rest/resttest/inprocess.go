package resttest

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// inProcess answers requests with a handler, as its answers come.
type inProcess struct{ handler http.Handler }

func (i inProcess) RoundTrip(request *http.Request) (*http.Response, error) {
	served := request.Clone(request.Context())
	served.RemoteAddr, served.RequestURI, served.Host = "127.0.0.1:1", request.URL.RequestURI(), "localhost"
	if served.Body == nil {
		served.Body = http.NoBody
	}
	reader, writer := io.Pipe()
	w := &pipeWriter{PipeWriter: writer, header: http.Header{}, begun: make(chan int, 1)}
	context.AfterFunc(request.Context(), func() { reader.CloseWithError(context.Canceled) })
	go func() {
		i.handler.ServeHTTP(w, served)
		w.WriteHeader(http.StatusOK)
		writer.Close()
	}()
	return &http.Response{StatusCode: <-w.begun, Header: w.header, Body: reader, Request: request}, nil
}

// pipeWriter is an answer that is read while it is written.
type pipeWriter struct {
	*io.PipeWriter
	header http.Header
	once   sync.Once
	begun  chan int // receives the status
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(code int) { w.once.Do(func() { w.begun <- code }) }

func (w *pipeWriter) Write(text []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.PipeWriter.Write(text)
}

func (w *pipeWriter) Flush() { w.WriteHeader(http.StatusOK) }
