import * as Fake from "./FakeUpstream.ts"
import { relay } from "./Relay.ts"

export type RecordedRequest = Fake.Received

/** A server that passes everything on to another one, and shows what came by: for fakes that keep only half of it. */
export const to = (target: string) => Fake.serving(relay(target))
