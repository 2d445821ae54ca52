package postgres

import (
	"testing"
)

// A crash of the database may lose a claim, but nothing else.
func TestAClaimLeavesBehindNoConnectionThatDoesNotWaitForTheDisk(t *testing.T) {
	s := openAt(t, lentURL(t))
	register(t, s, "w1")
	start(t, s, 3)
	for _, want := range []int{3, 0} {
		claimed, err := s.Claim(t.Context(), claimParams(s, "w1", 5))
		if err != nil || len(claimed.Tasks) != want {
			t.Fatalf("claimed %d runs (%v), want %d", len(claimed.Tasks), err, want)
		}
		for _, conn := range s.pool.AcquireAllIdle(t.Context()) {
			var setting string
			if err := conn.QueryRow(t.Context(), "show synchronous_commit").Scan(&setting); err != nil ||
				setting != "on" {
				t.Errorf("synchronous_commit = %q (%v), want on", setting, err)
			}
			conn.Release()
		}
	}
}
