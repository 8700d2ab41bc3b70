import { existsSync } from "node:fs"
import path from "node:path"
import { Context, Effect, Layer, Redacted } from "effect"
import { MediaStore } from "../../src/services/media/MediaStore.ts"
import * as MediaStores from "../../src/storage/MediaStores.ts"
import { assert, withLayer } from "../harness/It.ts"
import * as S3 from "../storage/S3.ts"
import { Cli, failure, json, misuse } from "./Cli.ts"

const stored = Effect.fnUntraced(function* (options: MediaStores.MediaStoreOptions) {
  const store = Context.get(yield* Layer.build(MediaStores.layer(options)), MediaStore)
  const name = yield* store.put({ type: "image/png", visibility: "public", body: Buffer.from("picture") })
  return { name, link: store.link(name), store }
})

withLayer(Cli.layer)("gateway media delete", (it) => {
  it.scoped("takes a file down by its link, or by its name", function* () {
    const { directory: home } = yield* Cli
    const directory = path.join(home, ".data", "media")
    const options = { store: "disk", directory, publicUrl: "http://127.0.0.1:8787/media" } as const
    const first = yield* stored(options)
    assert.deepStrictEqual(yield* json("media", "delete", first.link), { id: first.name, deleted: true })
    assert.isFalse(existsSync(path.join(directory, first.name)))
    assert.strictEqual(yield* failure(["media", "delete", first.link]), `There is no ${first.name} in the media store.`)
    const second = yield* stored(options)
    const { run } = yield* Cli
    const { code, stderr, stdout } = yield* run(["media", "delete", second.name])
    assert.deepStrictEqual({ code, stderr }, { code: 0, stderr: "" })
    assert.match(stdout, new RegExp(`^id +${second.name}\ndeleted +true\n$`))
  })

  it.scoped("takes nothing for a link that is none of this gateway's", function* () {
    const { name } = yield* stored({
      store: "disk",
      directory: path.join((yield* Cli).directory, ".data", "media"),
      publicUrl: "http://127.0.0.1:8787/media"
    })
    const foreign = [`https://elsewhere.test/media/${name}`, "/etc/passwd", name.slice(1)]
    for (const url of foreign) {
      assert.strictEqual(
        yield* failure(["media", "delete", url]),
        `${url} is not a media link of this gateway. Check MEDIA_PUBLIC_URL.`
      )
    }
    assert.include(yield* misuse(["media", "--json"]), "gateway media needs a subcommand")
    assert.include(yield* misuse(["media", "delete"]), "URL is required")
  })

  it.scoped("works on a bucket, and says what a bucket refuses", function* () {
    const server = yield* S3.make
    const { accessKeyId, bucket, region, secretAccessKey, sessionToken } = server.options
    const publicUrl = "https://cdn.test"
    const { link, name } = yield* stored({ store: "s3", ...server.options, publicUrl })
    const environment = {
      MEDIA_STORE: "s3",
      MEDIA_PUBLIC_URL: publicUrl,
      S3_BUCKET: bucket,
      S3_ENDPOINT: server.url,
      S3_REGION: region,
      AWS_ACCESS_KEY_ID: Redacted.value(accessKeyId),
      AWS_SECRET_ACCESS_KEY: Redacted.value(secretAccessKey),
      AWS_SESSION_TOKEN: sessionToken === undefined ? "" : Redacted.value(sessionToken)
    }
    const refused = yield* failure(["media", "delete", link], { ...environment, AWS_SECRET_ACCESS_KEY: "wrong" })
    assert.strictEqual(refused, "The media store failed: the store answered 403 to HEAD")
    const { code, stdout } = yield* (yield* Cli).run(["media", "delete", link, "--json"], environment)
    assert.deepStrictEqual({ code, record: JSON.parse(stdout) }, { code: 0, record: { id: name, deleted: true } })
    assert.include(yield* failure(["media", "delete", link], environment), `There is no ${name}`)
  })
})
