import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import path from "node:path"
import { Effect } from "effect"
import { MediaStore } from "../../../src/services/media/MediaStore.ts"
import { assertRefused, refusals } from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { ask, blocked, digits, get, layer, put, ServedMedia } from "./ServedMedia.ts"

const id = "a".repeat(32)

withLayer(layer)("local media", (it) => {
  const nowhere: ReadonlyArray<string> = [
    "/media",
    "/media/",
    "/media/public",
    "/media/public/",
    `/media/public/${id}.png`,
    "/media/NAME/",
    "/media//NAME",
    "/media/./NAME",
    "/media/x/../NAME",
    "/media/../media/NAME",
    "/media/NAME%00",
    "/media/NAME%00.png",
    "/media/NAME%2e",
    "/media/%2e%2e/secret.png",
    "/media/../secret.png",
    "/media/..%2fsecret.png",
    "/media/..%5csecret.png",
    "/media/public/../../secret.png",
    "/media/public/..%2f..%2fsecret.png",
    "/media/public/%2e%2e/%2e%2e/secret.png",
    "/media//etc/passwd",
    "/media/%2fetc%2fpasswd",
    "/media/DIRECTORY",
    "/media/PRIVATE",
    "/media/PRIVATE?public/x",
    "/media/public/../PRIVATE",
    "/media/public%2f../PRIVATE",
    `/media/incoming/${id}.part`,
    `/media/public/../incoming/${id}.part`,
    "/media/NAME.html",
    "/media/%zz",
    "/v1/media/NAME",
    `/media/${"x".repeat(5000)}`
  ]
  it.effect("are the only files of the machine that are served", function* () {
    const { directory } = yield* ServedMedia
    const name = yield* put(digits)
    const secret = yield* put(digits, "image/png", "private")
    writeFileSync(path.join(directory, "../secret.png"), "secret")
    writeFileSync(path.join(directory, "incoming", `${id}.part`), "half")
    const folder = `public/${id.slice(1)}d.png`
    mkdirSync(path.join(directory, folder), { recursive: true })
    for (const shape of nowhere) {
      const target = shape.replace("NAME", name).replace("PRIVATE", secret).replace("DIRECTORY", folder)
      assertRefused(yield* get(target), refusals.noEndpoint)
    }
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
      assertRefused(yield* ask(`/media/${name}`, { method }), refusals.noEndpoint)
    }
    assert.strictEqual((yield* get(`http://any.test/media/${name}`)).text, "0123456789")
    assert.deepStrictEqual((yield* ServedMedia).logged, [])
  })

  it.effect("are gone once they are removed, and refused to a blocked address", function* () {
    const name = yield* put(digits)
    assertRefused(yield* ask(`/media/${name}`, { headers: { "x-forwarded-for": blocked } }), refusals.denied)
    assert.strictEqual((yield* ask(`/media/${name}`)).status, 200)
    yield* Effect.flatMap(MediaStore, (store) => store.remove(name))
    assertRefused(yield* ask(`/media/${name}`), refusals.noEndpoint)
  })

  it.effect("that cannot be read are an internal error without details", function* () {
    const { directory, logged } = yield* ServedMedia
    const name = `public/${id.slice(1)}e.png`
    mkdirSync(path.join(directory, "public"), { recursive: true })
    symlinkSync(path.join(directory, name), path.join(directory, name))
    assertRefused(yield* ask(`/media/${name}`), refusals.internal)
    assert.lengthOf(logged, 1)
  })
})
