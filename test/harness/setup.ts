import { it, makeMethods } from "@effect/vitest"

// `layer` of @effect/vitest leaves its own `effect` and `scoped` on the one `it` that files of a worker share.
makeMethods(it)
