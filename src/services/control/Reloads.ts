import { Context, Effect, Layer, type Scope } from "effect"

/** Services, such as the database and the media store, register here to read their credentials again at a reload. */
export class Reloads extends Context.Reference<Reloads>()("gateway/Reloads", {
  defaultValue: (): {
    readonly register: (reload: Effect.Effect<void>) => Effect.Effect<void, never, Scope.Scope>
    readonly run: Effect.Effect<void>
  } => ({ register: () => Effect.void, run: Effect.void })
}) {
  static readonly layer = Layer.sync(Reloads, () => {
    const all = new Set<Effect.Effect<void>>()
    return {
      register: (reload) =>
        Effect.acquireRelease(
          Effect.sync(() => void all.add(reload)),
          () => Effect.sync(() => all.delete(reload))
        ),
      run: Effect.suspend(() => Effect.forEach([...all], (reload) => reload, { discard: true }))
    }
  })
}
