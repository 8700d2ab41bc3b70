import { createHmac } from "node:crypto"
import { isSigned } from "../../src/stripe/StripeWebhook.ts"
import { assert, describe, it } from "../harness/It.ts"

const secret = "whsec_a"
const now = 1_790_000_000_000
const time = now / 1000
const body = Buffer.from('{"a": "\u00e9"}\n')

const signatureOf = (at: number, key = secret) =>
  createHmac("sha256", key)
    .update(Buffer.concat([Buffer.from(`${at}.`), body]))
    .digest("hex")
const headerOf = (at: number, key = secret) => `t=${at},v1=${signatureOf(at, key)}`

describe("the signature of an event", () => {
  it("is that of its bytes and its time, one of several", () => {
    assert.isTrue(isSigned(secret, headerOf(time), body, now))
    assert.isTrue(isSigned(secret, `t=${time},v1=${signatureOf(time, "b")},v0=x,v1=${signatureOf(time)}`, body, now))
    assert.isFalse(isSigned(secret, headerOf(time, "b"), body, now))
    assert.isFalse(isSigned(secret, headerOf(time), Buffer.concat([body, Buffer.from(" ")]), now))
    assert.isFalse(isSigned(secret, `t=${time + 1},v1=${signatureOf(time)}`, body, now))
  })

  it("is good for 300 seconds, either way", () => {
    for (const away of [300, -300]) assert.isTrue(isSigned(secret, headerOf(time + away), body, now), String(away))
    for (const away of [301, -301]) assert.isFalse(isSigned(secret, headerOf(time + away), body, now), String(away))
  })

  it("is none by an empty secret, or in another form", () => {
    assert.isFalse(isSigned("", headerOf(time, ""), body, now))
    const signature = signatureOf(time)
    const wrong = [
      "",
      `v1=${signature}`,
      `t=${time}`,
      `t=${time},v1=`,
      `t=,v1=${signature}`,
      `t=${time},v0=${signature}`,
      `t=${time},t=${time},v1=${signature}`,
      `t=${time},v1=${signature.slice(2)}`,
      `t=${time},v1=${signature.toUpperCase()}`,
      `t=1e9,v1=${signature}`
    ]
    for (const header of wrong) assert.isFalse(isSigned(secret, header, body, now), header)
  })
})
