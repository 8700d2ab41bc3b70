import { Effect } from "effect"
import { assert, describe, it } from "../harness/It.ts"
import { ask, atDefaultPort, fetcherOver, haveNoConnections, make, ranges, sockets } from "./ForeignServer.ts"

/** What names resolve to in these tests. */
const names: Readonly<Record<string, ReadonlyArray<string>>> = {
  localhost: ["127.0.0.2", "::1"],
  "localhost.": ["127.0.0.2"],
  "inner.example": ["10.0.0.1"],
  "inner6.example": ["fd00::1"],
  "mapped.example": ["::ffff:127.0.0.2"],
  "nat64.example": ["64:ff9b::a9fe:a9fe"],
  "metadata.google.internal": ["169.254.169.254"],
  "metadata6.google.internal": ["fd00:ec2::254"],
  "instance-data.ec2.internal": ["169.254.169.254", "fd00:ec2::254"],
  "mixed.example": ["93.184.216.34", "127.0.0.2"],
  "mixed6.example": ["93.184.216.34", "::1"],
  "mixed-families.example": ["2606:4700::1111", "10.0.0.1"],
  "partly-allowed.example": ["127.0.0.1", "127.0.0.2"],
  "zone.example": ["fe80::1%lo"],
  "public.example": ["93.184.216.34", "2606:4700::1111"],
  "allowed.example": ["127.0.0.1"],
  "partly-public.example": ["127.0.0.1", "93.184.216.34"]
}

const resolve = (host: string) => {
  const found = names[host]
  return found === undefined ? Effect.fail(new Error("no such name")) : Effect.succeed(found)
}

const openFetcher = fetcherOver(["127.0.0.1"], { names: resolve })

const forbidden: ReadonlyArray<string> = [
  // Loopback, in every way of writing it.
  "http://127.0.0.2/",
  "https://127.0.0.2/",
  "http://127.2/",
  "http://127.0.2/",
  "http://2130706434/",
  "http://0x7f000002/",
  "http://0x7F.0.0.2/",
  "http://017700000002/",
  "http://0177.0.0.2/",
  "http://0177.0.0.02./",
  "http://127.0.0.2./",
  "http://%31%32%37.0.0.2/",
  "http://１２７.０.０.２/",
  "http://①②⑦.⓪.⓪.②/",
  "http://127。0。0。2/",
  "http:127.0.0.2/",
  "http:\\\\127.0.0.2\\",
  " http://127.0.0.2/\n",
  "ht\ttp://127.0\n.0.2/",
  "http://[::1]/",
  "http://[0:0:0:0:0:0:0:1]/",
  "http://[::127.0.0.2]/",
  "http://[::ffff:127.0.0.2]/",
  "http://[::ffff:7f00:2]/",
  "http://[64:ff9b::127.0.0.2]/",
  "http://[64:ff9b:1::7f00:2]/",
  "http://[2002:7f00:2::]/",
  "http://[2001:0:4136:e378:8000:63bf:80ff:fffd]/",
  "http://0.0.0.0/",
  "http://0/",
  "http://[::]/",
  // Private, and shared by a carrier.
  "http://10.0.0.1/",
  "http://167772161/",
  "http://172.16.0.1/",
  "http://192.168.1.1/",
  "http://0300.0250.1.1/",
  "http://100.64.0.1/",
  "http://[fc00::1]/",
  "http://[fd12:3456::1]/",
  "http://[fec0::1]/",
  // Link-local and metadata.
  "http://169.254.169.254/latest/meta-data/",
  "http://2852039166/",
  "http://0xa9fea9fe/",
  "http://0251.0376.0251.0376/",
  "http://169.254.43518/",
  "http://[::ffff:169.254.169.254]/",
  "http://[::ffff:a9fe:a9fe]/",
  "http://[64:ff9b::a9fe:a9fe]/",
  "http://[2002:a9fe:a9fe::1]/",
  "http://169.254.170.2/v2/credentials",
  "http://100.100.100.200/",
  "http://192.0.0.192/",
  "http://[fd00:ec2::254]/",
  "http://[fe80::1]/",
  "http://[fe80::a9fe:a9fe]/",
  // Multicast, reserved, documentation.
  "http://224.0.0.1/",
  "http://240.0.0.1/",
  "http://255.255.255.255/",
  "http://198.18.0.1/",
  "http://192.0.2.1/",
  "http://[ff02::1]/",
  "http://[2001:db8::1]/",
  "http://[100::1]/",
  "http://[4000::1]/",
  // Names that lead there, wholly or in part.
  ...Object.keys(names)
    .filter((name) => !["public.example", "allowed.example", "partly-public.example"].includes(name))
    .map((name) => `http://${name}/`),
  // Other ports, also of addresses that may be fetched from at their own.
  "http://public.example:8080/",
  "http://partly-public.example:8080/",
  "http://public.example:443/",
  "https://public.example:80/",
  "http://93.184.216.34:22/",
  "http://[2606:4700::1111]:6379/",
  "http://127.0.0.2:0/",
  // What is not http(s), or brings a credential.
  "file:///etc/passwd",
  "ftp://93.184.216.34/",
  "data:image/png;base64,iVBORw0KGgo=",
  "gopher://127.0.0.1:70/_",
  "blob:http://127.0.0.1/1",
  "javascript:alert(1)",
  "ws://127.0.0.1/",
  "//127.0.0.2/",
  "/etc/passwd",
  "",
  "http://",
  "http://user@public.example/",
  "http://user:secret@public.example/",
  "http://:secret@allowed.example/",
  "http://public.example@127.0.0.2/",
  "http://[fe80::1%25lo]/",
  "http://[fe80::1%lo]/",
  "http://256.0.0.1/",
  `http://public.example/${"x".repeat(9_000)}`
]

/** Where somebody listens who must never be called. */
const watched = Effect.all([atDefaultPort("127.0.0.2"), atDefaultPort("::1")])

const refused = Effect.fnUntraced(function* (url: string) {
  const fetcher = yield* openFetcher
  const { reason } = yield* Effect.flip(fetcher.bytes(ask(url)))
  assert.strictEqual(reason, "refused", url)
  return reason
})

describe("a URL of a forbidden address", () => {
  it.scopedLive.each(forbidden)("is refused before a socket is opened: %s", function* (url) {
    const servers = yield* watched
    const opened = yield* sockets
    yield* refused(url)
    assert.strictEqual(opened(), 0)
    assert.isTrue(haveNoConnections(servers))
  })

  // Of a redirect `http:path` is a path of the same host, and a header holds no more than ASCII.
  const targets = forbidden.filter(
    (url) => /^\w+:/.test(url) && !/^http:\w/.test(url) && url.length < 1_000 && /^[\x21-\x7e]+$/.test(url)
  )
  it.scopedLive.each(targets)("is refused as a redirect: %s", function* (url) {
    const servers = yield* watched
    const host = yield* make((_, response) => response.writeHead(302, { location: url }).end())
    const opened = yield* sockets
    yield* refused(`${host.url}/from`)
    assert.strictEqual(opened(), 1)
    assert.strictEqual(host.connections(), 1)
    assert.isTrue(haveNoConnections(servers))
  })

  it.scopedLive("of a public address is fetched", function* () {
    const fetcher = yield* openFetcher
    const opened = yield* sockets
    const { reason } = yield* Effect.flip(fetcher.bytes(ask("http://unknown.example/", { withinSeconds: 1 })))
    assert.strictEqual(reason, "network")
    assert.strictEqual(opened(), 0)
    // Whether or not there is an internet here, this one gets as far as a socket.
    yield* Effect.option(fetcher.bytes(ask("http://public.example:80/", { withinSeconds: 1 })))
    assert.strictEqual(opened(), 1)
  })
})

describe("the two lists of exempt ranges", () => {
  const lists: ReadonlyArray<readonly ["customer" | "provider", string, string]> = [
    ["customer", "127.0.0.1", "127.0.0.9/32"],
    ["provider", "127.0.0.9/32", "127.0.0.1"]
  ]
  it.scopedLive.each(lists)(
    "each exempt their own URLs from the checks of address and port: %s",
    function* ([from, fetchAllow, resultAllow]) {
      const fetcher = yield* fetcherOver([fetchAllow], { resultFetchAllow: ranges(resultAllow) })
      const host = yield* make((_, response) => response.end("fine"))
      assert.strictEqual(String(yield* fetcher.bytes(ask(host.url, { from }))), "fine")
      const other = from === "customer" ? "provider" : "customer"
      assert.strictEqual((yield* Effect.flip(fetcher.bytes(ask(host.url, { from: other })))).reason, "refused")
      assert.strictEqual(host.connections(), 1)
    }
  )

  it.scopedLive("exempt a name only when every address is in them", function* () {
    const fetcher = yield* openFetcher
    const host = yield* make((_, response) => response.end("fine"))
    const body = yield* fetcher.bytes(ask(`http://allowed.example:${host.port}/`))
    assert.strictEqual(String(body), "fine")
    assert.strictEqual(host.seen[0]?.host, `allowed.example:${host.port}`)
    yield* refused(`http://partly-allowed.example:${host.port}/`)
    assert.strictEqual(host.connections(), 1)
  })
})
