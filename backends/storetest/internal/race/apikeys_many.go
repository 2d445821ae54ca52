package race

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// ManyKeysCases are about many keys, and concurrent changes to them.
var ManyKeysCases = []fixture.Case{
	{Name: "there are at most so many keys", Run: func(s *fixture.F) {
		if testing.Short() {
			return // creating a thousand keys shows nothing more under the race detector
		}
		root := s.Key("root", engine.RoleAdmin)
		params := make([]engine.CreateKeyParams, engine.MaxKeys)
		for i := range params {
			params[i] = s.NewKey(fmt.Sprint("k", i), engine.RoleViewer)
		}
		const lanes = 8
		errs := fixture.AtOnce(lanes, func(lane int) error {
			for i := lane; i < len(params)-1; i += lanes {
				if _, err := s.Store.CreateKey(s.Ctx, params[i]); err != nil {
					return err
				}
			}
			return nil
		})
		for _, err := range errs {
			s.Must(err, "CreateKey")
		}
		s.NoKey(engine.ErrPrecondition, params[len(params)-1])
		fixture.Equal(s, "keys in the keyring", len(s.Keyring()), engine.MaxKeys)
		_, err := s.TryRevoke(root.ID)
		s.Refused(err, engine.ErrPrecondition, "RevokeKey of the last admin's")
		s.Revoke(params[0].Key.ID)
		_, err = s.Store.CreateKey(s.Ctx, params[len(params)-1])
		s.Must(err, "CreateKey after a revocation")
	}},
	{Name: "only one of many keys made with one name at once counts", Run: func(s *fixture.F) {
		s.Key("root", engine.RoleAdmin)
		for n := range 5 {
			params := make([]engine.CreateKeyParams, fixture.Racers)
			for i := range params {
				params[i] = s.NewKey(fmt.Sprint("ci-", n), engine.RoleClient)
			}
			errs := fixture.AtOnce(fixture.Racers, func(i int) error {
				_, err := s.Store.CreateKey(s.Ctx, params[i])
				return err
			})
			winner := s.OnlyWinner(errs, engine.ErrExists)
			ring := s.Keyring()
			fixture.Equal(s, "keys in the keyring", len(ring), n+2)
			fixture.Equal(s, "key of the name", ring[n+1].ID, params[winner].Key.ID)
		}
	}},
	{Name: "of many first keys made at once, an admin key comes first", Run: func(s *fixture.F) {
		for range 5 {
			params := make([]engine.CreateKeyParams, fixture.Racers)
			for i := range params {
				params[i] = s.NewKey(fmt.Sprint("k", i), engine.RoleViewer)
			}
			params[fixture.Racers/2].Key.Role, params[fixture.Racers/2].Key.Namespaces = engine.RoleAdmin, nil
			errs := fixture.AtOnce(fixture.Racers, func(i int) error {
				_, err := s.Store.CreateKey(s.Ctx, params[i])
				return err
			})
			s.Must(errs[fixture.Racers/2], "CreateKey of the admin's")
			for _, err := range errs {
				if err != nil {
					s.Refused(err, engine.ErrPrecondition, "CreateKey of a viewer's")
				}
			}
			ring := s.Keyring()
			fixture.Equal(s, "keys in the keyring", len(ring), fixture.Racers-countErrors(errs))
			for _, role := range []engine.KeyRole{engine.RoleViewer, engine.RoleAdmin} {
				for _, k := range ring {
					if k.Role == role {
						s.Revoke(k.ID)
					}
				}
			}
		}
	}},
	{Name: "of admin keys that revoke each other at once, one stays", Run: func(s *fixture.F) {
		s.Key("root", engine.RoleAdmin)
		s.Key("viewer", engine.RoleViewer)
		for n := range 5 {
			for i := range fixture.Racers {
				s.Key(fmt.Sprint("k", n, "-", i), engine.RoleAdmin)
			}
			var admins []engine.RevokeKeyParams
			for _, k := range s.Keyring() {
				if k.Role == engine.RoleAdmin {
					admins = append(admins, engine.RevokeKeyParams{
						ID: k.ID, By: fixture.Somebody, AuditID: s.ID(), Now: s.Now})
				}
			}
			errs := fixture.AtOnce(len(admins), func(i int) error {
				_, err := s.Store.RevokeKey(s.Ctx, admins[i])
				return err
			})
			fixture.Equal(s, "admins that were not revoked", countErrors(errs), 1)
			for _, err := range errs {
				if err != nil {
					s.Refused(err, engine.ErrPrecondition, "RevokeKey of the last")
				}
			}
			fixture.Equal(s, "keys in the keyring", len(s.Keyring()), 2)
		}
	}},
	{Name: "key uses recorded at once keep the latest time", Run: func(s *fixture.F) {
		root, ci := s.Key("root", engine.RoleAdmin), s.Key("ci", engine.RoleClient)
		type lap struct {
			uses []engine.KeyUse
			key  engine.CreateKeyParams
		}
		laps := make([]lap, fixture.Racers)
		for i := range laps {
			at := s.Now.Add(time.Duration(i) * time.Second)
			uses := []engine.KeyUse{{ID: root.ID, At: at}, {ID: ci.ID, At: at}}
			if i%2 == 1 {
				slices.Reverse(uses)
			}
			laps[i] = lap{uses, s.NewKey(fmt.Sprint("k", i), engine.RoleViewer)}
		}
		errs := fixture.AtOnce(fixture.Racers, func(i int) error {
			if err := s.Store.NoteKeyUse(s.Ctx, laps[i].uses); err != nil {
				return err
			}
			_, err := s.Store.CreateKey(s.Ctx, laps[i].key)
			return err
		})
		for _, err := range errs {
			s.Must(err, "NoteKeyUse and CreateKey")
		}
		for _, id := range []engine.ID{root.ID, ci.ID} {
			s.SameTime("last use", s.Kept(id).LastUsedAt, s.Now.Add((fixture.Racers-1)*time.Second))
		}
	}},
}

func countErrors(errs []error) (n int) {
	for _, err := range errs {
		if err != nil {
			n++
		}
	}
	return n
}
