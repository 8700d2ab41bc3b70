import { canonical, isPublic, parseAddress, within } from "../../src/fetching/PinnedRequest.ts"
import { assert, describe, it } from "../harness/It.ts"
import { ranges } from "./ForeignServer.ts"

const verdict = (text: string) => {
  const address = parseAddress(text)
  return address === undefined ? undefined : isPublic(address)
}

const open = [
  "1.1.1.1",
  "8.8.8.8",
  "93.184.216.34",
  "172.15.255.255",
  "172.32.0.0",
  "100.128.0.0",
  "223.255.255.255",
  "::ffff:8.8.8.8",
  "2606:4700::1111",
  "2a00:1450:4001:81b::200e"
]

const closed = [
  "0.0.0.0",
  "0.1.2.3",
  "10.0.0.1",
  "100.64.0.1",
  "100.100.100.200",
  "127.0.0.1",
  "127.255.255.254",
  "169.254.0.1",
  "169.254.169.254",
  "172.16.0.1",
  "172.31.255.255",
  "192.0.0.192",
  "192.0.2.1",
  "192.88.99.1",
  "192.168.255.255",
  "198.18.0.1",
  "198.19.255.255",
  "198.51.100.1",
  "203.0.113.1",
  "224.0.0.1",
  "239.255.255.255",
  "240.0.0.1",
  "255.255.255.255",
  "::",
  "::1",
  "::2",
  "::7f00:1",
  "::808:808",
  "::ffff:127.0.0.1",
  "::ffff:a9fe:a9fe",
  "::ffff:0:8.8.8.8",
  "64:ff9b::8.8.8.8",
  "64:ff9b::a9fe:a9fe",
  "64:ff9b:1::1",
  "100::1",
  "2001::1",
  "2001:0:4136:e378:8000:63bf:3fff:fdd2",
  "2001:2::1",
  "2001:10::1",
  "2001:db8::1",
  "2002:808:808::1",
  "2002:7f00:1::",
  "3fff::1",
  "4000::1",
  "5f00::1",
  "fc00::1",
  "fd00:ec2::254",
  "fdff::1",
  "fe80::1",
  "febf::1",
  "fec0::1",
  "ff02::1",
  "ff0e::1"
]

const none = [
  "",
  "::127.0.0.1",
  "::8.8.8.8",
  "localhost",
  "127.1",
  "0177.0.0.1",
  "0x7f.0.0.1",
  "2130706433",
  "1.2.3.256",
  "fe80::1%eth0",
  "[::1]"
]

describe("an address", () => {
  it.each(open)("%s is public", (text) => assert.isTrue(verdict(text)))
  it.each(closed)("%s is not", (text) => assert.isFalse(verdict(text)))
  it.each(none)("'%s' is no address", (text) => assert.isUndefined(verdict(text)))

  it("mapped into IPv6 is the IPv4 address", () => {
    const texts = ["::ffff:10.0.0.1", "::ffff:a00:1", "0:0:0:0:0:FFFF:0a00:0001", "10.0.0.1"]
    assert.deepStrictEqual(
      texts.map((text) => canonical(parseAddress(text) ?? assert.fail(text))),
      texts.map(() => "10.0.0.1")
    )
  })
})

describe("a list of ranges", () => {
  const has = within(ranges("10.1.0.0/16", "192.0.2.7", "fd00::/8", "::1"))
  const inside = ["10.1.2.3", "::ffff:10.1.2.3", "192.0.2.7", "fd12::1", "::1"]
  const outside = ["10.2.0.0", "192.0.2.8", "fe80::1", "::2", "::a01:203", "64:ff9b::a01:203"]

  it.each(inside)("contains %s", (text) => assert.isTrue(has(parseAddress(text) ?? assert.fail(text))))
  it.each(outside)("does not contain %s", (text) => assert.isFalse(has(parseAddress(text) ?? assert.fail(text))))
})
