import * as SafeFetcher from "../../../src/fetching/SafeFetcher.ts"
import { parseRange } from "../../../src/services/access/AddressRange.ts"

const loopback = parseRange("127.0.0.0/8")

/** The gateway's own fetcher, which may fetch providers' results from this machine. */
export const layer = SafeFetcher.layer({
  fetchAllow: [],
  resultFetchAllow: loopback === undefined ? [] : [loopback],
  connectTimeoutSeconds: 5
})
