package cron

import "strings"

// dayOfMonthSpecial parses L and nW. It returns false if item is neither.
func dayOfMonthSpecial(r *rule, f *field, item string) (bool, error) {
	upper := strings.ToUpper(item)
	switch {
	case upper == "L":
		f.last = true
		return true, nil
	case upper == "LW" || strings.HasPrefix(upper, "L-"):
		return false, r.refuse("%s is not supported; L, the last day, and 15W, the weekday nearest to the 15th, are",
			quote(item))
	case upper == "W" || !strings.HasSuffix(upper, "W"):
		return false, nil
	}
	day, err := r.value(item[:len(item)-1])
	if err != nil {
		return false, err
	}
	f.near.add(day)
	return true, nil
}

// dayOfWeekSpecial parses dL and d#n, where d is a number or a name. It returns false if item is
// neither.
func dayOfWeekSpecial(r *rule, f *field, item string) (bool, error) {
	if day, nth, ok := strings.Cut(item, "#"); ok {
		weekday, err := r.value(day)
		if err != nil {
			return false, err
		}
		n, ok := number(nth)
		if !ok || n < 1 || n > 5 {
			return false, r.refuse("#%s is out of #1-#5", bare(nth))
		}
		f.nth.add(nthWeekday(r.keep(weekday), n))
		return true, nil
	}
	if len(item) < 2 || !strings.HasSuffix(strings.ToUpper(item), "L") {
		return false, nil
	}
	weekday, err := r.value(item[:len(item)-1])
	if err != nil {
		return false, err
	}
	f.lasts.add(r.keep(weekday))
	return true, nil
}

// nthWeekday returns the number that stands for the n-th of a weekday in field.nth.
func nthWeekday(weekday, n int) int { return weekday + 7*(n-1) }
