import { explainReference, maxReferenceBytes, unusableReference } from "../../../src/domain/Media.ts"
import type { VideoParams } from "../../../src/domain/VideoRules.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { gif, gifBytes } from "../images/ImageBodies.ts"
import type { Words } from "../openapi/Published.ts"
import { base, decodeBody, refusal } from "./VideoBodies.ts"

const bytes = (value: Uint8Array) => ({ _tag: "Bytes", bytes: value }) as const
const url = (value: string) => ({ _tag: "Url", url: value }) as const
const unusable = (problem: string) => [unusableReference, explainReference(problem)] as const
const most = Number.MAX_SAFE_INTEGER

describe("the required fields of a video", () => {
  it("are enough", () => {
    assert.deepStrictEqual(decodeBody(base), {
      model: "m",
      prompt: "a cat",
      seconds: undefined,
      references: [],
      webhookUrl: undefined
    })
  })
})

type Fields = { readonly [field: string]: unknown }

describe("the optional fields of a video", () => {
  it.each<[Fields, Partial<VideoParams>]>([
    [{ seconds: 8 }, { seconds: 8 }],
    [{ seconds: "8" }, { seconds: 8 }],
    [{ seconds: 8.0 }, { seconds: 8 }],
    [{ seconds: "08" }, { seconds: 8 }],
    [{ seconds: 0 }, { seconds: 0 }],
    [{ seconds: "0" }, { seconds: 0 }],
    [{ seconds: -3 }, { seconds: -3 }],
    [{ seconds: "-3" }, { seconds: -3 }],
    [{ seconds: 1e300 }, { seconds: most }],
    [{ seconds: -1e300 }, { seconds: -most }],
    [{ seconds: "9".repeat(400) }, { seconds: most }],
    [{ duration: 5 }, { seconds: 5 }],
    [{ duration: "5" }, { seconds: 5 }],
    [{ duration: 5, seconds: 8 }, { seconds: 8 }],
    [{ duration: 5, seconds: 0 }, { seconds: 0 }],
    [{ duration: 5, seconds: null }, { seconds: 5 }],
    [{ duration: null, seconds: null }, {}],
    [{ input_reference: "https://a.test" }, { references: [url("https://a.test")] }],
    [{ input_reference: gif }, { references: [bytes(gifBytes)] }],
    [{ input_reference: `data:;base64,${gif}` }, { references: [bytes(gifBytes)] }],
    [{ input_reference: { image_url: "https://a.test" } }, { references: [url("https://a.test")] }],
    [{ input_reference: { image_url: gif, file_id: null } }, { references: [bytes(gifBytes)] }],
    [{ input_reference: { image_url: `data:;base64,${gif}` } }, { references: [bytes(gifBytes)] }],
    [
      { input_reference: [gif, { image_url: "https://a.test" }] },
      { references: [bytes(gifBytes), url("https://a.test")] }
    ],
    [{ input_reference: [] }, {}],
    [{ image: gif, input_reference: "https://a.test" }, { references: [bytes(gifBytes)] }],
    [{ image: [], input_reference: "https://a.test" }, { references: [url("https://a.test")] }],
    [{ image: null, input_reference: "https://a.test" }, { references: [url("https://a.test")] }],
    [{ webhook_url: "HTTPS://hooks.example/a?b=c" }, { webhookUrl: "HTTPS://hooks.example/a?b=c" }],
    [{ webhook_url: null }, {}],
    [{ n: 1 }, {}]
  ])("are accepted as %j", (fields, expected) => {
    assert.deepStrictEqual(decodeBody({ ...base, ...fields }), { ...decodeBody(base), ...expected })
  })

  it("include unknown ones, which are ignored", () => {
    const unknown = {
      size: "1280x720",
      resolution: 4,
      quality: [],
      response_format: "b64_json",
      stream: true,
      aspect_ratio: "16:9",
      user: {},
      anything: { at: ["all"] }
    }
    assert.deepStrictEqual(decodeBody({ ...base, ...unknown }), decodeBody(base))
  })

  const integers = ["8s", "8.0", "8.5", " 8", "8 ", "+8", "", "eight", "0x8", "1e1", "٨", 8.5, true, [], [8], {}]
  const notHttp = "`webhook_url` must be an http or https URL of at most 8192 characters."
  const notReference = "`input_reference` must be a string, a file or an object with `image_url`."
  const notUrl = "`input_reference.image_url` must be a string."
  const noFiles = "`input_reference.file_id` is not supported: send the image itself, or its URL as `image_url`."

  it.each<[field: string, values: ReadonlyArray<unknown>, param: string, words: Words]>([
    ["webhook_url", ["", "ftp://a.test", "a.test", 5, {}, ["https://a.test"]], "webhook_url", notHttp],
    ["webhook_url", [`https://a.test/${"x".repeat(8192)}`], "webhook_url", notHttp],
    ["seconds", integers, "seconds", "`seconds` must be an integer."],
    ["duration", integers, "duration", "`duration` must be an integer."],
    ["input_reference", [5, true, [5], [null], [[gif]], [gif, 1]], "input_reference", notReference],
    ["input_reference", [{}, { image_url: 5 }, { image_url: { url: "x" } }, [{}]], "input_reference", notUrl],
    [
      "input_reference",
      [{ file_id: "f" }, { file_id: "f", image_url: gif }, [gif, { file_id: 1 }]],
      "input_reference",
      noFiles
    ],
    [
      "input_reference",
      [Array.from({ length: 9 }, () => gif)],
      "input_reference",
      "`input_reference` must hold at most 8 images."
    ],
    ["input_reference", ["", { image_url: "" }], "image", unusable("is empty or not valid base64")],
    ["input_reference", ["a b!", { image_url: "ftp://a" }], "image", unusable("is neither an http(s) URL nor base64")],
    ["input_reference", ["http://"], "image", unusable("has a URL that is not valid or has more than 8192 characters")]
  ])("are refused where %s is %j", (field, values, param, words) => {
    for (const value of values) {
      assert.deepStrictEqual(refusal({ ...base, [field]: value }), ["InvalidRequest", param, ...[words].flat()])
    }
  })

  it("are refused where input_reference has more than 20 MiB", () => {
    const input = Buffer.alloc(maxReferenceBytes + 1).toString("base64")
    assert.deepStrictEqual(refusal({ ...base, input_reference: input }), [
      "InvalidRequest",
      "image",
      ...unusable("is larger than 20 MiB")
    ])
  })

  it("are checked even where another of them wins", () => {
    assert.deepStrictEqual(refusal({ ...base, seconds: 8, duration: "8s" }), [
      "InvalidRequest",
      "duration",
      "`duration` must be an integer."
    ])
    assert.deepStrictEqual(refusal({ ...base, image: gif, input_reference: 5 }), [
      "InvalidRequest",
      "input_reference",
      notReference
    ])
  })
})
