/** The pages of the app, in the order of the rail. */

export const PAGES = [
  { path: "runs", name: "Runs", key: "r" },
  { path: "tasks", name: "Tasks", key: "t" },
  { path: "agents", name: "Agents", key: "a" },
  { path: "adapters", name: "Adapters", key: "d" },
  { path: "costs", name: "Costs", key: "c" },
  { path: "settings", name: "Settings", key: "s" },
] as const;
