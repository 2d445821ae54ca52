package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// manyKeysCases are about many keys, and many who change them at once.
var manyKeysCases = []testCase{
	{"there are at most so many keys", func(s *stage) {
		if testing.Short() {
			return // a thousand creations say nothing more under the race detector
		}
		root := s.key("root", engine.RoleAdmin)
		params := make([]engine.CreateKeyParams, engine.MaxKeys)
		for i := range params {
			params[i] = s.newKey(fmt.Sprint("k", i), engine.RoleViewer)
		}
		const lanes = 8
		errs := atOnce(lanes, func(lane int) error {
			for i := lane; i < len(params)-1; i += lanes {
				if _, err := s.store.CreateKey(s.ctx, params[i]); err != nil {
					return err
				}
			}
			return nil
		})
		for _, err := range errs {
			s.must(err, "CreateKey")
		}
		s.noKey(engine.ErrPrecondition, params[len(params)-1])
		equal(s, "keys in the ring", len(s.keyring()), engine.MaxKeys)
		_, err := s.tryRevoke(root.ID)
		s.refused(err, engine.ErrPrecondition, "RevokeKey of the last admin's")
		s.revoke(params[0].Key.ID)
		_, err = s.store.CreateKey(s.ctx, params[len(params)-1])
		s.must(err, "CreateKey after a revocation")
	}},
	{"of many creations of one name at once exactly one counts", func(s *stage) {
		s.key("root", engine.RoleAdmin)
		for n := range 5 {
			params := make([]engine.CreateKeyParams, racers)
			for i := range params {
				params[i] = s.newKey(fmt.Sprint("ci-", n), engine.RoleClient)
			}
			errs := atOnce(racers, func(i int) error { _, err := s.store.CreateKey(s.ctx, params[i]); return err })
			winner := s.onlyWinner(errs, engine.ErrExists)
			ring := s.keyring()
			equal(s, "keys in the ring", len(ring), n+2)
			equal(s, "key of the name", ring[n+1].ID, params[winner].Key.ID)
		}
	}},
	{"of many first keys at once none but an admin's comes first", func(s *stage) {
		for range 5 {
			params := make([]engine.CreateKeyParams, racers)
			for i := range params {
				params[i] = s.newKey(fmt.Sprint("k", i), engine.RoleViewer)
			}
			params[racers/2].Key.Role, params[racers/2].Key.Namespaces = engine.RoleAdmin, nil
			errs := atOnce(racers, func(i int) error { _, err := s.store.CreateKey(s.ctx, params[i]); return err })
			s.must(errs[racers/2], "CreateKey of the admin's")
			for _, err := range errs {
				if err != nil {
					s.refused(err, engine.ErrPrecondition, "CreateKey of a viewer's")
				}
			}
			ring := s.keyring()
			equal(s, "keys in the ring", len(ring), racers-countErrors(errs))
			for _, role := range []engine.KeyRole{engine.RoleViewer, engine.RoleAdmin} {
				for _, k := range ring {
					if k.Role == role {
						s.revoke(k.ID)
					}
				}
			}
		}
	}},
	{"of admins that revoke each other at once one stays", func(s *stage) {
		s.key("root", engine.RoleAdmin)
		s.key("viewer", engine.RoleViewer)
		for n := range 5 {
			for i := range racers {
				s.key(fmt.Sprint("k", n, "-", i), engine.RoleAdmin)
			}
			var admins []engine.RevokeKeyParams
			for _, k := range s.keyring() {
				if k.Role == engine.RoleAdmin {
					admins = append(admins, engine.RevokeKeyParams{ID: k.ID, By: somebody, AuditID: s.id(), Now: s.now})
				}
			}
			errs := atOnce(len(admins), func(i int) error { _, err := s.store.RevokeKey(s.ctx, admins[i]); return err })
			equal(s, "admins that were not revoked", countErrors(errs), 1)
			for _, err := range errs {
				if err != nil {
					s.refused(err, engine.ErrPrecondition, "RevokeKey of the last")
				}
			}
			equal(s, "keys in the ring", len(s.keyring()), 2)
		}
	}},
	{"uses that are noted at once leave the latest, while keys come and go", func(s *stage) {
		root, ci := s.key("root", engine.RoleAdmin), s.key("ci", engine.RoleClient)
		type lap struct {
			uses []engine.KeyUse
			key  engine.CreateKeyParams
		}
		laps := make([]lap, racers)
		for i := range laps {
			at := s.now.Add(time.Duration(i) * time.Second)
			uses := []engine.KeyUse{{ID: root.ID, At: at}, {ID: ci.ID, At: at}}
			if i%2 == 1 {
				slices.Reverse(uses)
			}
			laps[i] = lap{uses, s.newKey(fmt.Sprint("k", i), engine.RoleViewer)}
		}
		errs := atOnce(racers, func(i int) error {
			if err := s.store.NoteKeyUse(s.ctx, laps[i].uses); err != nil {
				return err
			}
			_, err := s.store.CreateKey(s.ctx, laps[i].key)
			return err
		})
		for _, err := range errs {
			s.must(err, "NoteKeyUse and CreateKey")
		}
		for _, id := range []engine.ID{root.ID, ci.ID} {
			s.sameTime("last use", s.kept(id).LastUsedAt, s.now.Add((racers-1)*time.Second))
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
