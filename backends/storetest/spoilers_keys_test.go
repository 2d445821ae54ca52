package storetest_test

import (
	"context"
	"errors"

	"github.com/kagzi/kagzi/engine"
)

// keySabotages break promises about API keys.
var keySabotages = []sabotage{
	{"a revoked key opens nothing", func(s engine.Store) engine.Store {
		return revokesInWords{s}
	}, []string{"api key"}},
	{"the keyring holds keys that are not revoked", func(s engine.Store) engine.Store {
		return returnsRevoked{s}
	}, []string{"api key"}},
	{"the first key is an admin's", func(s engine.Store) engine.Store {
		return locksEverybodyOut{s}
	}, []string{"api key"}},
	{"a name is one key's", func(s engine.Store) engine.Store { return sharesNames{s} }, []string{"api key"}},
	{"the last admin stays", func(s engine.Store) engine.Store {
		return revokesTheLast{s}
	}, []string{"api key", "model"}},
	{"a secret is kept", func(s engine.Store) engine.Store { return forgetsHashes{s} }, []string{"api key"}},
	{"a key ends when it was to", func(s engine.Store) engine.Store { return lastsForEver{s} }, []string{"api key"}},
	{"a change of a key notifies", func(s engine.Store) engine.Store {
		return mute{s, engine.NotifyKeys}
	}, []string{"api key"}},
	{"a use is no change of a key", func(s engine.Store) engine.Store { return makesNoise{s} }, []string{"api key"}},
	{"uses are recorded", func(s engine.Store) engine.Store { return forgetsUses{s} }, []string{"api key", "model"}},
	{"a refusal is written down", func(s engine.Store) engine.Store {
		return refusesInSilence{s}
	}, []string{"api key"}},
	{"a refusal is written down once", func(s engine.Store) engine.Store {
		return refusesTwice{s}
	}, []string{"api key"}},
	{"who made a key is written down", func(s engine.Store) engine.Store {
		return makesInSecret{s}
	}, []string{"api key"}},
}

type revokesInWords struct{ engine.Store }

func (d revokesInWords) RevokeKey(ctx context.Context, p engine.RevokeKeyParams) (engine.APIKey, error) {
	keys, _, err := d.ListKeys(ctx, engine.Page{Limit: engine.MaxPage})
	for _, k := range keys {
		if k.ID == p.ID {
			k.RevokedAt = p.Now
			return k, err
		}
	}
	return d.Store.RevokeKey(ctx, p)
}

type returnsRevoked struct{ engine.Store }

func (d returnsRevoked) Keyring(ctx context.Context) ([]engine.APIKey, error) {
	keys, _, err := d.ListKeys(ctx, engine.Page{Limit: engine.MaxPage})
	return keys, err
}

// locksEverybodyOut makes any key first, not only an admin key.
type locksEverybodyOut struct{ engine.Store }

func (d locksEverybodyOut) CreateKey(ctx context.Context, p engine.CreateKeyParams) (engine.APIKey, error) {
	k, err := d.Store.CreateKey(ctx, p)
	if errors.Is(err, engine.ErrPrecondition) {
		p.Key.Role, p.Key.Namespaces = engine.RoleAdmin, nil
		return d.Store.CreateKey(ctx, p)
	}
	return k, err
}

type sharesNames struct{ engine.Store }

func (d sharesNames) CreateKey(ctx context.Context, p engine.CreateKeyParams) (engine.APIKey, error) {
	k, err := d.Store.CreateKey(ctx, p)
	if errors.Is(err, engine.ErrExists) {
		p.Key.Name += p.Key.ID.String()
		return d.Store.CreateKey(ctx, p)
	}
	return k, err
}

// revokesTheLast revokes the last admin key.
type revokesTheLast struct{ engine.Store }

func (d revokesTheLast) RevokeKey(ctx context.Context, p engine.RevokeKeyParams) (engine.APIKey, error) {
	k, err := d.Store.RevokeKey(ctx, p)
	if !errors.Is(err, engine.ErrPrecondition) {
		return k, err
	}
	ring, err := d.Keyring(ctx)
	if err != nil {
		return engine.APIKey{}, err
	}
	for _, other := range ring {
		if other.ID != p.ID {
			if _, err := d.Store.RevokeKey(ctx, engine.RevokeKeyParams{
				ID: other.ID, By: p.By, AuditID: other.ID, Now: p.Now}); err != nil {
				return engine.APIKey{}, err
			}
		}
	}
	return d.Store.RevokeKey(ctx, p)
}

type forgetsHashes struct{ engine.Store }

func (d forgetsHashes) CreateKey(ctx context.Context, p engine.CreateKeyParams) (engine.APIKey, error) {
	p.Key.Hash = [32]byte{}
	return d.Store.CreateKey(ctx, p)
}

type lastsForEver struct{ engine.Store }

func (d lastsForEver) Keyring(ctx context.Context) ([]engine.APIKey, error) {
	ring, err := d.Store.Keyring(ctx)
	for i := range ring {
		ring[i].ExpiresAt = ring[i].RevokedAt
	}
	return ring, err
}

// makesNoise sends NotifyKeys whenever a key is used: it makes a key and revokes it.
type makesNoise struct{ engine.Store }

func (d makesNoise) NoteKeyUse(ctx context.Context, uses []engine.KeyUse) error {
	if len(uses) > 0 {
		use := uses[0]
		noise := engine.APIKey{ID: engine.NewID(use.At), Name: "noise", Role: engine.RoleAdmin}
		if _, err := d.CreateKey(ctx, engine.CreateKeyParams{
			Key: noise, AuditID: engine.NewID(use.At), Now: use.At}); err != nil {
			return err
		}
		if _, err := d.RevokeKey(ctx, engine.RevokeKeyParams{
			ID: noise.ID, AuditID: engine.NewID(use.At), Now: use.At}); err != nil {
			return err
		}
	}
	return d.Store.NoteKeyUse(ctx, uses)
}

type forgetsUses struct{ engine.Store }

func (d forgetsUses) NoteKeyUse(context.Context, []engine.KeyUse) error { return nil }

type refusesInSilence struct{ engine.Store }

func (d refusesInSilence) NoteRefusal(context.Context, engine.AuditEvent) error { return nil }

type refusesTwice struct{ engine.Store }

func (d refusesTwice) NoteRefusal(ctx context.Context, e engine.AuditEvent) error {
	e.ID = engine.NewID(e.At)
	return d.Store.NoteRefusal(ctx, e)
}

type makesInSecret struct{ engine.Store }

func (d makesInSecret) CreateKey(ctx context.Context, p engine.CreateKeyParams) (engine.APIKey, error) {
	p.By = engine.Actor{}
	return d.Store.CreateKey(ctx, p)
}
