package e2e

import "time"

// promptly limits what must happen at once, on a busy machine too: without the notification it
// would happen a minute later at the earliest. Benchmarks measure how soon it usually happens.
const promptly = 10 * time.Second
