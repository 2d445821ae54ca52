package postgres

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// What the store remembers of the rows that nearly every start needs and that hardly ever change: the namespaces and the lanes. Other
// servers make them too, but nobody deletes any.

//go:embed sql/insert_namespace.sql
var insertNamespaceSQL string

// ensureNamespace makes a namespace on its first use. Its id follows from its name, because a store invents nothing.
func (s *Store) ensureNamespace(name string, now time.Time) error {
	if _, known := s.namespaces.Load(name); known {
		return nil
	}
	err := s.writeEntered("make a namespace", func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, insertNamespaceSQL, args{"namespace": name, "id": namespaceID(name), "now": micros(now)})
		return err
	})
	if err == nil {
		s.namespaces.Store(name, struct{}{})
	}
	return err
}

// namespaceID is a UUID of version 8 made of the name's hash.
func namespaceID(name string) [16]byte {
	sum := sha256.Sum256([]byte("kagzi namespace " + name))
	id := [16]byte(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return id
}

type laneKey struct {
	namespace, queue, kind, requirements string
	priority                             int
}

//go:embed sql/get_lane.sql
var getLaneSQL string

//go:embed sql/insert_lane.sql
var insertLaneSQL string

// ensureLane is the id of a lane, which is made on its first use.
func (s *Store) ensureLane(key laneKey) (int64, error) {
	if id, known := s.laneIDs.Load(key); known {
		return id.(int64), nil
	}
	a := args{"namespace": key.namespace, "task_queue": key.queue, "workflow_type": key.kind,
		"requirements": key.requirements, "priority": key.priority}
	var id int64
	err := s.writeEntered("make a lane", func(ctx context.Context, t *tx) error {
		err := t.QueryRow(ctx, getLaneSQL, a).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			err = t.QueryRow(ctx, insertLaneSQL, a).Scan(&id)
		}
		if errors.Is(err, pgx.ErrNoRows) { // a rival made it meanwhile
			err = t.QueryRow(ctx, getLaneSQL, a).Scan(&id)
		}
		return err
	})
	if err == nil {
		s.laneIDs.Store(key, id)
	}
	return id, err
}
