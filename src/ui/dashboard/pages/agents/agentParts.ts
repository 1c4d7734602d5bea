/** The code of each part of an agent, loaded when it is shown or about to be. */
export const agentParts = {
  workbench: () => import("../workbench/Workbench.tsx"),
  agentSources: () => import("./AgentSources.tsx"),
  tools: () => import("./tools/Tools.tsx"),
  settings: () => import("./Settings.tsx"),
  versions: () => import("./Versions.tsx"),
  designer: () => import("../widget/Designer.tsx"),
  channels: () => import("./Channels.tsx"),
  keys: () => import("./Keys.tsx"),
  improve: () => import("../improve/Improve.tsx"),
  testCases: () => import("./TestCases.tsx"),
  experiments: () => import("./Experiments.tsx")
} as const
