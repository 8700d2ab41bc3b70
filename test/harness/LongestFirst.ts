/** The order in which test files run. */

import { BaseSequencer, type TestSpecification } from "vitest/node"

/** These folders contain the longest tests. They wait for leases to expire and processes to end, so they start first. */
const long = /\/test\/(planted|crashes|model|chaos|fuzz|cli|database)\//

/** In a clean clone, vitest knows only the sizes of files, not their durations. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const usual = super.sort.bind(this)
    const sorted = await usual(files)
    const isLong = ({ moduleId }: TestSpecification) => long.test(moduleId)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}
