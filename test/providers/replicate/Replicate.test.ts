import { videoAdapterContract } from "../../contracts/VideoAdapter.ts"
import { videoHarness } from "./Hosts.ts"

videoAdapterContract(videoHarness)
