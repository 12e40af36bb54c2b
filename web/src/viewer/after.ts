/** What can follow a run, and why something cannot. */
export interface AfterRun {
  message: () => void;
  retry: () => void;
  /** Why nobody can go on from it with a message. */
  noMessage: string | null;
  noRetry: string | null;
}
