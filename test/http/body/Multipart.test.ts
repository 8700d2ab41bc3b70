import { Either, FastCheck } from "effect"
import { formToObject } from "../../../src/http/body/Multipart.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { encoded, filePart, formOf, formType, rawPart, readForm, readParts, textPart } from "./Forms.ts"

const one = formOf([textPart("a", "1")])

describe("a form", () => {
  it("has its texts and files in their order", () => {
    assert.deepStrictEqual(readParts(formOf([textPart("b", "1"), filePart("a", "PNG"), textPart("b", "2")])), [
      ["b", "1"],
      ["a", "file:PNG"],
      ["b", "2"]
    ])
  })

  it("is read as JavaScript clients write it, with any content", async () => {
    const form = new FormData()
    form.append("prompt", 'Zwei "Zeilen"\r\n--und mehr ☃ 图')
    form.append("image[]", new Blob([new Uint8Array([0, 13, 10, 45, 45, 255])]), '图 "a"; name=evil;\r\n☃.png')
    form.append("with ] odd = name", "")
    const { body, type } = await encoded(form)
    const parts = Either.getOrThrow(readForm(type, body))
    assert.deepStrictEqual(parts, [
      { name: "prompt", value: 'Zwei "Zeilen"\r\n--und mehr ☃ 图' },
      { name: "image[]", value: Buffer.from([0, 13, 10, 45, 45, 255]) },
      { name: "with ] odd = name", value: "" }
    ])
  })

  it("of any texts and bytes is read as it was written", async () => {
    const name = FastCheck.stringMatching(/^[a-z[\]_]{1,9}$/)
    const entry = FastCheck.tuple(name, FastCheck.oneof(FastCheck.fullUnicodeString(), FastCheck.uint8Array()))
    await FastCheck.assert(
      FastCheck.asyncProperty(FastCheck.array(entry), async (entries) => {
        const form = new FormData()
        for (const [key, value] of entries) form.append(key, typeof value === "string" ? value : new Blob([value]))
        const { body, type } = await encoded(form)
        const parts = Either.getOrThrow(readForm(type, body))
        const lines = (text: string) => text.replaceAll(/\r\n|\r|\n/g, "\r\n")
        assert.deepStrictEqual(
          parts.map(({ name: key, value }) => [key, typeof value === "string" ? value : Array.from(value)]),
          entries.map(([key, value]) => [
            key,
            typeof value === "string" ? lines(value).replace(/^\uFEFF/, "") : Array.from(value)
          ])
        )
      })
    )
  })

  it.each([
    ["nothing in it", "--xYzZY--", []],
    ["text before and after", `This is MIME.\r\n${one.toString()}\r\n--xYzZY\r\nevil`, [["a", "1"]]],
    ["spaces after a boundary", one.toString().replace("xYzZY\r\n", "xYzZY \t\r\n"), [["a", "1"]]],
    ["an empty text", formOf([textPart("a", "")]), [["a", ""]]],
    ["a line's end in a text", formOf([textPart("a", "1\r\n\r\n2\r\n")]), [["a", "1\r\n\r\n2\r\n"]]],
    ["dashes in a text", formOf([textPart("a", "--xYzZ\r\n--xYz")]), [["a", "--xYzZ\r\n--xYz"]]],
    ["headers of other letters", formOf([rawPart("CONTENT-disposition:FORM-DATA;NAME=a", "1")]), [["a", "1"]]],
    ["other headers", formOf([rawPart('X-A: b\r\nContent-Disposition: form-data; name="a"', "1")]), [["a", "1"]]],
    [
      "a type of text",
      formOf([rawPart('Content-Disposition: form-data; name="a"\r\nContent-Type: text/plain; charset=UTF-8', "1")]),
      [["a", "1"]]
    ],
    [
      "bytes without a file's name",
      formOf([rawPart('Content-Disposition: form-data; name="a"\r\nContent-Type: image/png', "1")]),
      [["a", "file:1"]]
    ],
    [
      "only an encoded file's name",
      formOf([rawPart("Content-Disposition: form-data; name=\"a\"; filename*=UTF-8''%ff%zz", "1")]),
      [["a", "file:1"]]
    ],
    ["an empty file's name", formOf([filePart("a", "1", "")]), [["a", "file:1"]]],
    ["a path as a file's name", formOf([filePart("a", "1", "..\\\\..\\\\etc/passwd")]), [["a", "file:1"]]],
    ["a file's name that looks like more", formOf([filePart("a", "1", 'x; name=\\"b\\"; y')]), [["a", "file:1"]]]
  ])("may have %s", (_, body, expected) => {
    assert.deepStrictEqual<unknown>(readParts(body), expected)
  })

  it("may have a file's name in another encoding than UTF-8", () => {
    const part = filePart("a", "1", "b?r.png")
    part[part.indexOf("?")] = 0xe4
    assert.deepStrictEqual(readParts(formOf([part])), [["a", "file:1"]])
  })

  it.each([
    'multipart/form-data; boundary="xYzZY"',
    "Multipart/Form-Data;BOUNDARY=xYzZY; charset=utf-8",
    "multipart/form-data; charset=utf-8; boundary=xYzZY;"
  ])("may be announced as %s", (type) => {
    assert.deepStrictEqual(readParts(one, type), [["a", "1"]])
  })

  it("may have the longest boundary, of any of its characters", () => {
    for (const own of ["'()+_,-./:=? a", "x".repeat(70)]) {
      assert.deepStrictEqual(readParts(formOf([textPart("a", "1")], own), formType(`"${own}"`)), [["a", "1"]])
    }
  })
})

describe("the object of a form", () => {
  const png = new Uint8Array([1])
  it.each([
    ["one text", [["a", "1"]], { a: "1" }],
    ["one file", [["image", png]], { image: png }],
    [
      "a name again",
      [
        ["a", "1"],
        ["a", "2"]
      ],
      { a: ["1", "2"] }
    ],
    ["brackets", [["image[]", png]], { image: [png] }],
    [
      "numbered brackets",
      [
        ["image[0]", png],
        ["image[1]", "u"]
      ],
      { image: [png, "u"] }
    ],
    [
      "both",
      [
        ["image", png],
        ["image[]", "u"],
        ["b", "1"]
      ],
      { image: [png, "u"], b: "1" }
    ],
    ["brackets around a name", [["input_reference[image_url]", "u"]], { "input_reference[image_url]": "u" }],
    [
      "an empty text",
      [
        ["a", ""],
        ["b", "1"],
        ["b", ""]
      ],
      { b: "1" }
    ]
  ] as const)("is made from %s", (_, entries, expected) => {
    assert.deepStrictEqual<unknown>(formToObject(entries.map(([name, value]) => ({ name, value }))), expected)
  })

  it("cannot reach a prototype", () => {
    const object = formToObject([
      { name: "__proto__", value: "evil" },
      { name: "constructor", value: "evil" }
    ])
    assert.strictEqual(Object.getPrototypeOf(object), Object.prototype)
    assert.notProperty({}, "evil")
    assert.deepStrictEqual(Object.keys(object), ["__proto__", "constructor"])
  })
})
