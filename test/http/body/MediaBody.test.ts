import { Effect } from "effect"
import { explainReference, maxReferenceBytes, referenceProblems, unusableReference } from "../../../src/domain/Media.ts"
import { decodeReferences } from "../../../src/http/images/ImageReferences.ts"
import { assert, describe, it } from "../../harness/It.ts"
import * as Image from "../images/ImageBodies.ts"
import type { Words } from "../openapi/Published.ts"
import * as Video from "../videos/VideoBodies.ts"

const { base, gif, gifBytes } = Image
const bytes = (value: Uint8Array) => ({ _tag: "Bytes", bytes: value }) as const
const url = (value: string) => ({ _tag: "Url", url: value }) as const
const unusable = (problem: string, subject?: string) => [unusableReference, explainReference(problem, subject)] as const
const { empty, large, neither, url: noUrl } = referenceProblems
const notImages = "`image` must be a string or an array of strings."
const largeBase64 = Buffer.alloc(300 * 1024).toString("base64")
const largestReference = Buffer.alloc(maxReferenceBytes, 7)

for (const [surface, taken, refusals, onlyOne] of [
  ["an image", Image.decodeBody, [Image.refusal, Image.editRefusal], "`n` must be 1: send one request per image."],
  ["a video", Video.decodeBody, [Video.refusal], "`n` must be 1."]
] as const) {
  describe(`the body of a request for ${surface}`, () => {
    const notObject = ["The body must be a JSON object.", null] as const
    const noModel = ["`model` is required.", "model"] as const
    const noPrompt = ["`prompt` is required.", "prompt"] as const

    it.each([
      [null, ...notObject],
      ["text", ...notObject],
      [7, ...notObject],
      [[base], ...notObject],
      [{}, ...noModel],
      [{ prompt: "p" }, ...noModel],
      [{ ...base, model: "" }, ...noModel],
      [{ ...base, model: null }, ...noModel],
      [{ ...base, model: 5 }, ...noModel],
      [{ ...base, model: ["m"] }, ...noModel],
      [{ n: 2, prompt: "", seconds: "x", image: 5 }, ...noModel],
      [{ model: "m" }, ...noPrompt],
      [{ model: "m", prompt: "" }, ...noPrompt],
      [{ model: "m", prompt: null }, ...noPrompt],
      [{ model: "m", prompt: 5 }, ...noPrompt],
      [{ model: "m", prompt: ["p"] }, ...noPrompt],
      [{ model: "m", n: 2, image: 5, resolution: "8K", seconds: "x" }, ...noPrompt]
    ])("is refused where it is %j: %s", (body, message, param) => {
      for (const refusal of refusals) assert.deepStrictEqual(refusal(body), ["InvalidRequest", param, message])
    })

    it("may have a prompt of at most a million characters", () => {
      assert.strictEqual(taken({ ...base, prompt: "x".repeat(1_000_000) }).prompt.length, 1_000_000)
      const [, param, message] = refusals[0]({ ...base, prompt: "x".repeat(1_000_001) })
      assert.deepStrictEqual([param, message], ["prompt", "`prompt` must have at most 1,000,000 characters."])
    })

    it("counts a prompt's emoji as one character each, as its published schema does", () => {
      for (const prompt of ["😀".repeat(600_000), "😀".repeat(1_000_000), `\ude00${"x".repeat(999_998)}\ud83d`]) {
        assert.strictEqual(taken({ ...base, prompt }).prompt, prompt)
      }
      for (const prompt of ["😀".repeat(1_000_001), `${"😀".repeat(999_999)}\ud83d\ud83d`]) {
        const [, , message] = refusals[0]({ ...base, prompt })
        assert.strictEqual(message, "`prompt` must have at most 1,000,000 characters.")
      }
    })

    it("may have null for every field that it leaves out", () => {
      const names = ["image", "resolution", "quality", "response_format", "n", "stream", "mask", "images"]
      const all = [...names, "seconds", "duration", "input_reference"]
      assert.deepStrictEqual(taken({ ...base, ...Object.fromEntries(all.map((name) => [name, null])) }), taken(base))
    })

    it.each([
      ["https://example.com/a.png", [url("https://example.com/a.png")]],
      ["HTTP://example.com/a", [url("HTTP://example.com/a")]],
      [gif, [bytes(gifBytes)]],
      [gif.replace("=", ""), [bytes(gifBytes)]],
      [`${gif.slice(0, 8)}\r\n${gif.slice(8)}\n`, [bytes(gifBytes)]],
      ["-_-_", [bytes(Buffer.from("+/+/", "base64"))]],
      [`data:image/gif;base64,${gif}`, [bytes(gifBytes)]],
      [`DATA:image/gif;name=a.gif;BASE64,${gif}`, [bytes(gifBytes)]],
      [`data:;base64,${gif}`, [bytes(gifBytes)]],
      [`data:text/html;base64,${gif}`, [bytes(gifBytes)]],
      [
        [gif, "https://b.test"],
        [bytes(gifBytes), url("https://b.test")]
      ],
      [Array.from({ length: 8 }, () => gif), Array.from({ length: 8 }, () => bytes(gifBytes))],
      [[], []]
    ])("may have the reference image %j", (image, references) => {
      assert.deepStrictEqual(taken({ ...base, image }), { ...taken(base), references })
    })

    it("may have a reference image of just 20 MiB, in base64 with and without padding", () => {
      const base64 = largestReference.toString("base64")
      for (const image of [base64, largestReference.toString("base64url"), `data:;base64,${base64}`]) {
        const [reference] = taken({ ...base, image }).references
        assert.isTrue(reference?._tag === "Bytes" && largestReference.equals(reference.bytes))
      }
    })

    it.each<[field: string, values: ReadonlyArray<unknown>, words: Words]>([
      [
        "image",
        [5, true, {}, [5], [null], [[gif]], [gif, {}], { url: "https://a.test" }, { image_url: gif }],
        notImages
      ],
      ["image", [Array.from({ length: 9 }, () => gif)], "`image` must hold at most 8 images."],
      ["image", ["", " ", "=", [""], "data:image/png;base64,"], unusable(empty)],
      ["image", [["", gif]], unusable(empty, "Image 1 of 2")],
      ["image", [[gif, gif, ""]], unusable(empty, "Image 3 of 3")],
      ["image", ["A", "a b c!", "AAAA=AAA", "AAAA====", "ä", "\0"], unusable(neither)],
      ["image", ["data:", "data:image/png", "data:image/png,abc", "data:;base64,%41"], unusable(neither)],
      ["image", ["ftp://a.test/a.png", "file:///etc/passwd", "//a.test/a.png", "javascript:0"], unusable(neither)],
      ["image", ["http://", "https://a b.test", "https://[::1", "http://a.test:99999/"], unusable(noUrl)],
      ["image", [`https://a.test/${"a".repeat(8192)}`], unusable(noUrl)],
      ["n", [0, 2, 10, -1, 1.5, "1", true, []], onlyOne]
    ])("is refused with the %s %j: %s", (field, values, words) => {
      const expected = ["InvalidRequest", field, ...[words].flat()]
      for (const value of values) {
        assert.deepStrictEqual(refusals[0]({ ...base, [field]: value }), expected)
      }
    })

    it("is refused with a reference image of more than 20 MiB", () => {
      const image = Buffer.alloc(maxReferenceBytes + 1).toString("base64")
      assert.deepStrictEqual(refusals[0]({ ...base, image }), ["InvalidRequest", "image", ...unusable(large)])
    })

    it.each([
      ["an object", { image_url: largeBase64 }],
      ["an object in an array", [gif, { image_url: largeBase64 }]]
    ])("refuses a large `image` that is %s, as it does a small one", async (_, image) => {
      const body = await Effect.runPromise(decodeReferences({ ...base, image }))
      assert.deepStrictEqual(refusals[0](body), ["InvalidRequest", "image", notImages])
    })
  })
}
