import { loadOnce } from "../../loadOnce.ts"

/** The code of each part of an agent, loaded when it is shown or about to be. */
export const agentParts = {
  workbench: loadOnce(() => import("../workbench/Workbench.tsx")),
  agentSources: loadOnce(() => import("./AgentSources.tsx")),
  tools: loadOnce(() => import("./tools/Tools.tsx")),
  settings: loadOnce(() => import("./Settings.tsx")),
  versions: loadOnce(() => import("./Versions.tsx")),
  designer: loadOnce(() => import("../widget/Designer.tsx")),
  channels: loadOnce(() => import("./channels/Channels.tsx")),
  keys: loadOnce(() => import("./Keys.tsx")),
  improve: loadOnce(() => import("../improve/Improve.tsx")),
  testCases: loadOnce(() => import("./TestCases.tsx")),
  experiments: loadOnce(() => import("./Experiments.tsx"))
} as const
