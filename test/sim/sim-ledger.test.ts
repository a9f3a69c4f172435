import { ledgerSuite } from '../suites/ledger.ts';
import { SimLedger } from './sim-ledger.ts';

ledgerSuite('simulated ledger', async (body) => {
  const ledger = new SimLedger('00000000000000aa');
  body({ open: () => ledger });
});
