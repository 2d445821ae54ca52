package storetest_test

import (
	"context"
	"errors"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// hookSabotages break promises about hooks.
var hookSabotages = []sabotage{
	{"the secret before a rotation is valid for a time", func(s engine.Store) engine.Store {
		return rotatesAtOnce{s}
	}, []string{"hook"}},
	{"at most two secrets are valid", func(s engine.Store) engine.Store { return rotatesAgain{s} }, []string{"hook"}},
	{"a deleted hook is gone", func(s engine.Store) engine.Store { return keepsHooks{s} }, []string{"hook"}},
	{"a hook's name is one hook's", func(s engine.Store) engine.Store { return sharesHookNames{s} }, []string{"hook"}},
	{"a hook is of one namespace", func(s engine.Store) engine.Store { return mixesHooks{s} }, []string{"hook"}},
	{"who made a hook is written down", func(s engine.Store) engine.Store {
		return makesHooksInSecret{s}
	}, []string{"hook"}},
}

type rotatesAtOnce struct{ engine.Store }

func (d rotatesAtOnce) RotateHook(ctx context.Context, p engine.RotateHookParams) (engine.Hook, error) {
	p.OldUntil = time.Time{}
	return d.Store.RotateHook(ctx, p)
}

type rotatesAgain struct{ engine.Store }

func (d rotatesAgain) RotateHook(ctx context.Context, p engine.RotateHookParams) (engine.Hook, error) {
	h, err := d.Store.RotateHook(ctx, p)
	if errors.Is(err, engine.ErrPrecondition) {
		p.OldUntil = time.Time{}
		return d.Store.RotateHook(ctx, p)
	}
	return h, err
}

type keepsHooks struct{ engine.Store }

func (d keepsHooks) DeleteHook(ctx context.Context, p engine.DeleteHookParams) error {
	_, err := d.GetHook(ctx, p.Namespace, p.Name)
	return err
}

type sharesHookNames struct{ engine.Store }

func (d sharesHookNames) CreateHook(ctx context.Context, p engine.CreateHookParams) (engine.Hook, error) {
	h, err := d.Store.CreateHook(ctx, p)
	if errors.Is(err, engine.ErrExists) {
		p.Hook.Name += "-2"
		return d.Store.CreateHook(ctx, p)
	}
	return h, err
}

type mixesHooks struct{ engine.Store }

func (d mixesHooks) GetHook(ctx context.Context, _, name string) (engine.Hook, error) {
	return d.Store.GetHook(ctx, engine.DefaultNamespace, name)
}

type makesHooksInSecret struct{ engine.Store }

func (d makesHooksInSecret) CreateHook(ctx context.Context, p engine.CreateHookParams) (engine.Hook, error) {
	p.By = engine.Actor{}
	return d.Store.CreateHook(ctx, p)
}
