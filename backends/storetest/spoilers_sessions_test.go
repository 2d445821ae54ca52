package storetest_test

import (
	"context"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// sessionSabotages break promises about sessions.
var sessionSabotages = []sabotage{
	{"a session that was ended is gone", func(s engine.Store) engine.Store {
		return endsInWords{s}
	}, []string{"session"}},
	{"the end of a session notifies", func(s engine.Store) engine.Store {
		return mute{s, engine.NotifyKeys}
	}, []string{"session"}},
	{"a session does not outlive its limit", func(s engine.Store) engine.Store {
		return lastsLonger{s}
	}, []string{"session"}},
	{"a session that is used goes on", func(s engine.Store) engine.Store {
		return forgetsSessionUse{s}
	}, []string{"session"}},
	{"a session's secret is kept", func(s engine.Store) engine.Store {
		return forgetsSessionHash{s}
	}, []string{"session"}},
	{"who began a session is written down", func(s engine.Store) engine.Store {
		return beginsInSecret{s}
	}, []string{"session"}},
}

type endsInWords struct{ engine.Store }

func (endsInWords) EndSession(context.Context, engine.EndSessionParams) error { return nil }

type lastsLonger struct{ engine.Store }

func (d lastsLonger) GetSession(ctx context.Context, id engine.ID) (engine.Session, error) {
	one, err := d.Store.GetSession(ctx, id)
	if limit := one.CreatedAt.Add(engine.SessionLife); !one.ExpiresAt.Before(limit) {
		one.ExpiresAt = limit.Add(time.Hour)
	}
	return one, err
}

type forgetsSessionUse struct{ engine.Store }

func (forgetsSessionUse) NoteSessionUse(context.Context, []engine.KeyUse) error { return nil }

type forgetsSessionHash struct{ engine.Store }

func (d forgetsSessionHash) CreateSession(ctx context.Context, p engine.CreateSessionParams) (engine.Session, error) {
	p.Session.Hash = [32]byte{}
	return d.Store.CreateSession(ctx, p)
}

type beginsInSecret struct{ engine.Store }

func (d beginsInSecret) CreateSession(ctx context.Context, p engine.CreateSessionParams) (engine.Session, error) {
	p.By = engine.Actor{}
	return d.Store.CreateSession(ctx, p)
}
