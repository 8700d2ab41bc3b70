import { videoAdapterContract } from "../../contracts/VideoAdapter.ts"
import { aimockHarness } from "./Aimock.ts"
import { videoHarness } from "./Hosts.ts"

for (const harness of [videoHarness, aimockHarness]) videoAdapterContract(harness)
