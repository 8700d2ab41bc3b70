import { Chunk, Effect, Layer, Option, Predicate, Ref, Stream } from "effect"
import { formatMediaName, parseMediaName } from "../../src/domain/Media.ts"
import { MediaStore, MediaStoreFailed } from "../../src/services/media/MediaStore.ts"
import { Ids } from "../../src/services/runtime/Ids.ts"
import { links } from "../../src/storage/DiskStore.ts"

/** A media store in memory. */
export class MediaStoreFake {
  readonly files = new Map<string, Uint8Array>()
  /** Whether all writes fail. `check` then fails too. */
  isBroken = false
  /** The number of received bytes of unfinished files. */
  unfinished = 0
  readonly #before: Array<Effect.Effect<void, MediaStoreFailed>> = []
  readonly #after: Array<Effect.Effect<void>> = []

  /** The next calls of `put` run these effects, one each, before they read any bytes. */
  before(...next: ReadonlyArray<Effect.Effect<void, MediaStoreFailed>>): void {
    this.#before.push(...next)
  }

  /** The next calls of `put` run these effects, one each, after their file is stored. */
  after(...next: ReadonlyArray<Effect.Effect<void>>): void {
    this.#after.push(...next)
  }

  static readonly away = new MediaStoreFailed({ detail: "the fake is away" })

  /** The names of the stored files, by visibility. */
  get names() {
    const all = [...this.files.keys()]
    return {
      public: all.filter((name) => name.startsWith("public/")),
      private: all.filter((name) => name.startsWith("private/"))
    }
  }

  readonly #taken = <E>(body: Uint8Array | Stream.Stream<Uint8Array, E>) =>
    Effect.gen(this, function* () {
      if (Predicate.isUint8Array(body)) return Uint8Array.from(body)
      const taken = yield* Ref.make(0)
      const chunks = yield* body.pipe(
        Stream.tap(({ length }) =>
          Effect.zipRight(
            Ref.update(taken, (sum) => sum + length),
            Effect.sync(() => (this.unfinished += length))
          )
        ),
        Stream.runCollect,
        Effect.ensuring(Effect.map(Ref.get(taken), (sum) => (this.unfinished -= sum)))
      )
      return new Uint8Array(Buffer.concat(Chunk.toReadonlyArray(chunks)))
    })

  readonly layer = Layer.effect(
    MediaStore,
    Effect.map(Ids, (ids) =>
      MediaStore.of({
        put: ({ body, type, visibility }) =>
          Effect.gen(this, function* () {
            yield* this.#before.shift() ?? Effect.void
            const bytes = yield* this.#taken(body)
            const name = formatMediaName({ visibility, id: ids.unguessable(), type })
            this.files.set(name, bytes)
            yield* this.#after.shift() ?? Effect.void
            return name
          }),
        check: Effect.suspend(() => (this.isBroken ? MediaStoreFake.away : Effect.void)),
        ...links("http://media.test"),
        has: (name) => Effect.sync(() => this.files.has(name)),
        sizeOf: (name) =>
          Effect.sync(() => Option.map(Option.fromNullable(this.files.get(name)), ({ length }) => length)),
        read: (name) => Effect.sync(() => Option.fromNullable(this.files.get(name))),
        remove: (name) => Effect.sync(() => parseMediaName(name) !== undefined && this.files.delete(name))
      })
    )
  )
}
