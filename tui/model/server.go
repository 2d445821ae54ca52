package model

import (
	"context"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// serverEvery is the polling interval while the page of the server is on the screen.
const serverEvery = 5 * time.Second

// Server holds what a server reports about itself, loaded every 5 s while shown.
type Server struct {
	base
	reader *reader[serverAnswer]
	next   *timer
	answer serverAnswer
	before serverAnswer // the previous answer, for rates
}

type serverAnswer struct {
	at     time.Time // by this machine's clock; zero: no answer yet
	info   *kagziv1.GetServerInfoResponse
	health *kagziv1.HealthCheckResponse
}

// NewServer returns the model; Show starts to load.
func NewServer(l *Link) *Server {
	s := &Server{}
	s.base = join(l, s.heard)
	s.reader = &reader[serverAnswer]{
		tasks: s.tasks, done: s.took,
		prepare: func() func(context.Context) (serverAnswer, error) {
			return func(ctx context.Context) (answer serverAnswer, err error) {
				if answer.info, err = l.api.GetServerInfo(ctx, &kagziv1.GetServerInfoRequest{}); err != nil {
					return answer, err
				}
				answer.health, err = l.api.HealthCheck(ctx, &kagziv1.HealthCheckRequest{})
				answer.at = l.tasks.now()
				return answer, err
			}
		},
	}
	return s
}

// Show loads now and every 5 s.
func (s *Server) Show() {
	s.shown = true
	if s.link.Ready() {
		s.Refresh()
	}
}

// Hide stops loading.
func (s *Server) Hide() {
	s.shown = false
	s.reader.stop()
	s.next.stop()
	s.next = nil
}

// Refresh loads now.
func (s *Server) Refresh() { s.reader.now() }

// Info returns the facts about the server; nil until loaded.
func (s *Server) Info() *kagziv1.GetServerInfoResponse { return s.answer.info }

// Health returns the health of the server; nil until loaded.
func (s *Server) Health() *kagziv1.HealthCheckResponse { return s.answer.health }

// Rate returns how many calls of a method ended per second between the last two answers; 0 before
// the second answer.
func (s *Server) Rate(method string) float64 {
	seconds := s.answer.at.Sub(s.before.at).Seconds()
	if s.before.at.IsZero() || seconds <= 0 {
		return 0
	}
	return max(float64(calls(s.answer.info, method)-calls(s.before.info, method))/seconds, 0)
}

func calls(info *kagziv1.GetServerInfoResponse, method string) int64 {
	for _, m := range info.GetMethods() {
		if m.GetMethod() == method {
			return m.GetCalls()
		}
	}
	return 0
}

// Err returns why there is nothing to show; nil if there is something.
func (s *Server) Err() error { return s.failure(s.answer.info != nil) }

// Stale returns the error of the latest load; nil if it worked.
func (s *Server) Stale() error { return s.err }

func (s *Server) heard(c Change) {
	if s.shown && c.Back {
		s.Refresh()
	}
}

func (s *Server) took(answer serverAnswer, err error) {
	s.err = err
	if err == nil {
		s.before, s.answer = s.answer, answer
	}
	s.next.stop()
	s.next = s.tasks.after(serverEvery, func() {
		if s.link.Ready() && !s.link.Frozen() {
			s.reader.want()
			return
		}
		s.next = nil // Back loads again
	})
	s.change()
}
