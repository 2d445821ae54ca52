package postgres

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kagzi/kagzi/engine"
)

func TestTimeoutsOfTheDatabaseAreUnavailable(t *testing.T) {
	for _, code := range []string{codeCanceled, codeIdleInTx, codeTxTimeout, codeLockTimeout, "57P05"} {
		if err := translate("write", &pgconn.PgError{Code: code}); !errors.Is(err, engine.ErrUnavailable) {
			t.Errorf("SQLSTATE %s is %v, want ErrUnavailable", code, err)
		}
	}
}
