/** What the rows of a transcript ask of whoever shows them: a run's viewer, or the playground. */

import type { Entry } from "../api/types";
import type { Row } from "../transcript/rows";

export interface Reader {
  /** The run that the entries are of; empty if there is none. */
  readonly id: string;
  readonly run: { cwd: string | null } | null;
  readonly live: boolean;
  isOpen(row: Row): boolean;
  toggle(key: string, open: boolean): void;
  whole(entryId: string): Promise<Entry>;
}
