import { assert, describe, it } from "../harness/It.ts"
import { type SignedRequest, verify } from "./SigV4.ts"

/** The account, the time and the four requests of Amazon's own examples. */
const account = {
  accessKeyId: "AKIAIOSFODNN7EXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
  region: "us-east-1"
}
const now = Date.parse("2013-05-24T00:00:00Z")
const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

const signed = (names: string, signature: string) =>
  `AWS4-HMAC-SHA256 Credential=${account.accessKeyId}/20130524/us-east-1/s3/aws4_request,SignedHeaders=${names},Signature=${signature}`

const example = (
  target: string,
  authorization: string,
  more: Partial<Omit<SignedRequest, "target">> = {}
): SignedRequest => ({
  method: "GET",
  target,
  body: new Uint8Array(),
  ...more,
  headers: {
    host: "examplebucket.s3.amazonaws.com",
    "x-amz-content-sha256": emptyHash,
    "x-amz-date": "20130524T000000Z",
    authorization,
    ...more.headers
  }
})

const plain = "host;x-amz-content-sha256;x-amz-date"

const examples: ReadonlyArray<readonly [name: string, request: SignedRequest]> = [
  [
    "GET object",
    example(
      "/test.txt",
      signed(
        "host;range;x-amz-content-sha256;x-amz-date",
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
      ),
      { headers: { range: "bytes=0-9" } }
    )
  ],
  [
    "PUT object",
    example(
      "/test%24file.text",
      signed(
        "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
      ),
      {
        method: "PUT",
        body: Buffer.from("Welcome to Amazon S3."),
        headers: {
          date: "Fri, 24 May 2013 00:00:00 GMT",
          "x-amz-content-sha256": "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
          "x-amz-storage-class": "REDUCED_REDUNDANCY"
        }
      }
    )
  ],
  [
    "GET bucket lifecycle",
    example("/?lifecycle", signed(plain, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"))
  ],
  [
    "GET bucket",
    example("/?max-keys=2&prefix=J", signed(plain, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"))
  ]
]

describe("the tests' own verifier of signatures", () => {
  for (const [name, request] of examples) {
    const judged = (change: Partial<SignedRequest>, at = now) => verify({ ...request, ...change }, account, at)
    const { headers } = request

    it(`agrees with Amazon's example of ${name}`, () => assert.strictEqual(judged({}), "ok"))

    it(`refuses ${name} when anything is changed`, () => {
      assert.strictEqual(judged({ method: "DELETE" }), "SignatureDoesNotMatch")
      assert.strictEqual(judged({ target: `${request.target}x` }), "SignatureDoesNotMatch")
      assert.strictEqual(judged({ body: Buffer.from("other") }), "SignatureDoesNotMatch")
      assert.strictEqual(judged({ headers: { ...headers, host: "other" } }), "SignatureDoesNotMatch")
      assert.strictEqual(judged({ headers: { ...headers, "x-amz-acl": "public-read" } }), "SignatureDoesNotMatch")
      assert.strictEqual(judged({ headers: { ...headers, authorization: undefined } }), "AccessDenied")
      assert.strictEqual(judged({ headers: { ...headers, "x-amz-security-token": "t" } }), "InvalidToken")
      assert.strictEqual(judged({}, now + 16 * 60_000), "RequestTimeTooSkewed")
      const others = { ...account, secretAccessKey: "wrong" }
      assert.strictEqual(verify(request, others, now), "SignatureDoesNotMatch")
      assert.strictEqual(verify(request, { ...account, accessKeyId: "OTHER" }, now), "InvalidAccessKeyId")
      assert.strictEqual(verify(request, { ...account, region: "eu-west-1" }, now), "SignatureDoesNotMatch")
    })
  }
})
